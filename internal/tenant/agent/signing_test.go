package agent_test

import (
	"fmt"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/agent"
)

// Two organizations may use the same key id and even the same key: each sees its own.
func TestSigningKeyOfTwoOrganizations(t *testing.T) {
	w := newWorld(t)
	private := edkey.NewPrivate()
	for _, tenant := range []id.Tenant{red, blue} {
		w.register(tenant, w.first[tenant].Agent, "same", private)
	}
	if err := w.step("revoke", red, w.first[red].Agent, "same"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // read, then cached
		w.hasStatus(red, w.first[red].Agent, "same", agent.Revoked)
		w.hasStatus(blue, w.first[blue].Agent, "same", agent.Active)
		_, err := w.signingKey(red, w.first[blue].Agent, "same")
		refused(t, "blue's agent in red", err, fault.NotFound, "Not found")
	}
}

// A key is read once for each config version, and a change is visible in the first state that has it.
func TestSigningKeyIsCached(t *testing.T) {
	w := newWorld(t)
	c := w.first[red]
	reads := func(want int64) {
		t.Helper()
		before := w.store.reads.Load()
		for range 5 {
			w.hasStatus(red, c.Agent, c.Key, agent.Active)
		}
		if got := w.store.reads.Load() - before; got != want {
			t.Errorf("got %d reads, want %d", got, want)
		}
	}
	reads(2) // the key, and the agent
	old := w.State(t, red)
	w.create(red, "other-bot")
	reads(2)
	if got, err := w.agents.SigningKey(t.Context(), old, c.Agent, c.Key); err != nil || got.Status != agent.Active {
		t.Errorf("under the state before: got %+v, %v", got, err)
	}
	reads(0)
	if err := w.step("revoke", red, c.Agent, c.Key); err != nil {
		t.Fatal(err)
	}
	w.hasStatus(red, c.Agent, c.Key, agent.Revoked)
}

// All keys are found even if there are more than the cache holds.
func TestSigningKeyBeyondTheCache(t *testing.T) {
	w := newWorld(t)
	w.agents = agent.New(agent.Options{Records: w.store, Events: w.SystemEvents, Clock: w.Clock, Cached: 1})
	bot := w.first[red].Agent
	for i := range 40 {
		w.register(red, bot, id.Key(fmt.Sprintf("k%d", i)), edkey.NewPrivate())
	}
	for round := range 2 {
		for i := range 40 {
			key := id.Key(fmt.Sprintf("k%d", i))
			if got, err := w.signingKey(red, bot, key); err != nil || got.ID != key {
				t.Fatalf("round %d: got %+v, %v; want %s", round, got, err, key)
			}
		}
	}
}

func TestUnreadableStore(t *testing.T) {
	const message = "Agents and keys can't be read"
	w := newWorld(t)
	c := w.first[red]
	s := w.State(t, red)
	w.store.blind.Store(true)
	_, err := w.agents.SigningKey(t.Context(), s, c.Agent, c.Key)
	refused(t, "signing key", err, fault.Unavailable, message)
	_, err = w.agents.RegisterKey(t.Context(), red, ann, c.Agent, registration(red, c.Agent, "k", edkey.NewPrivate()))
	refused(t, "register", err, fault.Unavailable, message)
	_, _, err = w.agents.CreateAgent(t.Context(), red, ann, agent.Wanted{})
	refused(t, "create", err, fault.Unavailable, message)
	refused(t, "retire", w.step("retire", red, c.Agent, c.Key), fault.Unavailable, message)
	_, err = w.agents.ListAgents(t.Context(), red, "", 10)
	refused(t, "list agents", err, fault.Unavailable, message)
	_, err = w.agents.ListKeys(t.Context(), red, c.Agent, "", 10)
	refused(t, "list keys", err, fault.Unavailable, message)
	_, err = w.agents.DIDKeys(t.Context(), red, c.Agent)
	refused(t, "DID keys", err, fault.Unavailable, message)
	_, err = w.agents.Owner(t.Context(), c.Agent)
	refused(t, "owner", err, fault.Unavailable, message)
	_, err = w.keyKnown(c.Private.Public().Bytes())
	refused(t, "key known", err, fault.Unavailable, message)
}

func BenchmarkSigningKey(b *testing.B) {
	w := newWorld(b)
	c, s := w.first[red], w.State(b, red)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := w.agents.SigningKey(b.Context(), s, c.Agent, c.Key); err != nil {
				b.Fatal(err)
			}
		}
	})
}
