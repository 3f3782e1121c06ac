package agent_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// Keys are listed in the order of their registration, whatever their names and the clock.
func TestDIDKeys(t *testing.T) {
	w := newWorld(t)
	c := w.first[red]
	one, two, three := edkey.NewPrivate(), edkey.NewPrivate(), edkey.NewPrivate()
	w.register(red, c.Agent, "z", one)
	w.register(red, c.Agent, "b", two)
	w.register(red, c.Agent, "a", three)
	w.Pass(time.Hour)
	for step, key := range map[string]id.Key{"retire": "z", "revoke": "b"} {
		if err := w.step(step, red, c.Agent, key); err != nil {
			t.Fatal(err)
		}
	}
	ended := id.InstantOf(w.Clock())
	want := []did.Key{
		{Public: c.Private.Public().Bytes(), KeyID: c.Key, State: did.Active},
		{Public: one.Public().Bytes(), KeyID: "z", State: did.Retired, Ended: ended},
		{Public: two.Public().Bytes(), KeyID: "b", State: did.Revoked, Ended: ended},
		{Public: three.Public().Bytes(), KeyID: "a", State: did.Active},
	}
	if got, err := w.agents.DIDKeys(t.Context(), red, c.Agent); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for tenant, of := range w.first {
		if owner, err := w.agents.Owner(t.Context(), of.Agent); err != nil || owner != tenant {
			t.Errorf("owner of %s: got %d, %v; want %d", of.Agent, owner, err, tenant)
		}
	}
	for _, unknown := range []id.Agent{"", ".", "nobody", "system", c.Agent + "/z", "no body"} {
		_, err := w.agents.Owner(t.Context(), unknown)
		refused(t, string(unknown), err, fault.NotFound, "Not found")
	}
}

func TestDIDKeysOfManyPages(t *testing.T) {
	w := newWorld(t)
	c := w.first[red]
	const many = 300
	for i := range many {
		key := id.Key(fmt.Sprintf("k%d", many-i))
		w.register(red, c.Agent, key, edkey.NewPrivate())
		if err := w.step("retire", red, c.Agent, key); err != nil {
			t.Fatal(err)
		}
	}
	got, err := w.agents.DIDKeys(t.Context(), red, c.Agent)
	if err != nil || len(got) != many+1 {
		t.Fatalf("got %d keys, %v; want %d", len(got), err, many+1)
	}
	for i, k := range got[1:] {
		if want := id.Key(fmt.Sprintf("k%d", many-i)); k.KeyID != want {
			t.Fatalf("key %d: got %s, want %s", i, k.KeyID, want)
		}
	}
}

// keyKnown reports whether anybody holds a public key.
func (w *world) keyKnown(public [32]byte) (known bool, err error) {
	for _, err := range w.agents.KeyHolders(w.t.Context(), public) {
		return err == nil, err
	}
	return false, nil
}

// The holders of a public key are those that registered it, on each page of claims.
func TestKeyHolders(t *testing.T) {
	w := newWorld(t)
	private := edkey.NewPrivate()
	for _, tenant := range []id.Tenant{blue, red} {
		w.register(tenant, w.first[tenant].Agent, "shared", private)
	}
	var got []id.Tenant
	for holder, err := range w.agents.KeyHolders(t.Context(), private.Public().Bytes()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, holder)
	}
	if want := []id.Tenant{red, blue}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A public key is known from its registration on, whatever its status, but not by a claim alone.
func TestKeyKnown(t *testing.T) {
	w := newWorld(t)
	known := func(private edkey.Private, want bool) {
		t.Helper()
		if got, err := w.keyKnown(private.Public().Bytes()); err != nil || got != want {
			t.Errorf("got %v, %v; want %v", got, err, want)
		}
	}
	private := edkey.NewPrivate()
	known(w.first[red].Private, true)
	known(private, false)
	w.Store.Fail(func(storage.Batch) storagetest.Failure { return storagetest.Refused })
	bot := w.first[red].Agent
	if _, err := w.agents.RegisterKey(t.Context(), red, ann, bot, registration(red, bot, "k", private)); err == nil {
		t.Fatal("the append did not fail")
	}
	w.Store.Fail(nil)
	known(private, false)
	w.register(blue, w.first[blue].Agent, "k", private)
	known(private, true)
	if err := w.step("revoke", blue, w.first[blue].Agent, "k"); err != nil {
		t.Fatal(err)
	}
	known(private, true)
}

// An organization that was claimed but never created has no agent.
func TestNewAgentWithoutItsOrganization(t *testing.T) {
	w := newWorld(t)
	_, c, err := w.agents.NewAgent(t.Context(), 77, ann, agent.Wanted{ID: "early-bird"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.agents.Owner(t.Context(), "early-bird")
	refused(t, "agent", err, fault.NotFound, "Not found")
	if known, err := w.keyKnown(c.Private.Public().Bytes()); known || err != nil {
		t.Errorf("got %v, %v; want false", known, err)
	}
	if _, _, err := w.agents.NewAgent(t.Context(), 77, ann, agent.Wanted{ID: "early-bird"}); err != nil {
		t.Errorf("second attempt: %v", err)
	}
}

func TestLists(t *testing.T) {
	w := newWorld(t)
	var agents []id.Agent
	for i := range 5 {
		name := id.Agent(fmt.Sprintf("bot-%d", i))
		w.create(red, name)
		w.register(red, "bot-0", id.Key(fmt.Sprintf("k%d", i)), edkey.NewPrivate())
		agents = append(agents, name)
	}
	agents = append([]id.Agent{w.first[red].Agent}, agents...) // agt_ < bot-
	var got []id.Agent
	for after := id.Agent(""); ; {
		page, err := w.agents.ListAgents(t.Context(), red, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range page {
			got = append(got, a.ID)
		}
		if len(page) < 2 {
			break
		}
		after = page[1].ID
	}
	if !slices.Equal(got, agents) {
		t.Errorf("got %v, want %v", got, agents)
	}
	first, err := w.agents.ListKeys(t.Context(), red, "bot-0", "", 4)
	if err != nil || len(first) != 4 {
		t.Fatalf("got %v, %v", first, err)
	}
	rest, err := w.agents.ListKeys(t.Context(), red, "bot-0", first[3].ID, 4)
	if err != nil || len(rest) != 2 || rest[0].ID != "k4" {
		t.Errorf("got %v, %v", rest, err)
	}
	_, err = w.agents.ListKeys(t.Context(), blue, "bot-0", "", 4)
	refused(t, "blue", err, fault.NotFound, "Not found")
	if page, err := w.agents.ListAgents(t.Context(), blue, "", 10); err != nil || len(page) != 1 || page[0].DisplayName != "first" {
		t.Errorf("blue: got %v, %v", page, err)
	}
}
