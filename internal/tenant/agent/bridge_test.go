package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
)

// bridge creates a tenant's bridge key.
func (w *world) bridge(tenant id.Tenant) *agent.Bridge {
	w.t.Helper()
	var made *agent.Bridge
	_, err := w.SystemEvents.Append(w.t.Context(), tenant, "ik_1", func(ctx context.Context, s *log.State) (act sysevent.Change, err error) {
		made, act, err = w.agents.MakeBridgeKey(ctx, s, "ik_1")
		return act, err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// active returns the bridge that signs for a tenant at present.
func (w *world) active(tenant id.Tenant) *agent.Bridge {
	w.t.Helper()
	b, err := w.agents.Bridge(w.t.Context(), w.State(w.t, tenant))
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

func TestBridgeKey(t *testing.T) {
	w := newWorld(t)
	if b := w.active(red); b != nil {
		t.Fatalf("before its first use: got %v", b.Key.ID)
	}
	made := w.bridge(red)
	got := w.active(red)
	if got == nil || got.Key.ID != made.Key.ID || got.Private.Seed() != made.Private.Seed() || got.Agent != made.Agent {
		t.Fatalf("got %+v, want %+v", got, made)
	}
	if !strings.HasPrefix(string(made.Agent), "bridge_") || !strings.HasPrefix(string(made.Key.ID), "bridge_") || made.Key.Custody != event.CustodyServer {
		t.Errorf("got agent %s, key %s, custody %s", made.Agent, made.Key.ID, made.Key.Custody)
	}
	public := did.Multikey(made.Private.Public().Bytes())
	w.wantStatements(red,
		ledgertest.Statement{Kind: "ledger_agent_created", Principal: "ik_1", Payload: fmt.Sprintf(`{"agent_id":"%s","bridge":true,"display_name":"Workflow bridge"}`, made.Agent)},
		ledgertest.Statement{Kind: "ledger_key_registered", Principal: "ik_1", Payload: fmt.Sprintf(`{"agent_id":"%s","custody":"server","key_id":"%s","public_key":"%s"}`, made.Agent, made.Key.ID, public)})
	keys, err := w.agents.DIDKeys(t.Context(), red, made.Agent)
	if err != nil || len(keys) != 1 || keys[0].Public != made.Private.Public().Bytes() || keys[0].State != did.Active {
		t.Errorf("public keys: got %v, %v", keys, err)
	}
	if known, err := w.keyKnown(made.Private.Public().Bytes()); err != nil || !known {
		t.Errorf("known: got %v, %v", known, err)
	}
	if b := w.active(blue); b != nil {
		t.Errorf("the other organization's: got %v", b.Key.ID)
	}
	if other := w.bridge(blue); other.Agent == made.Agent || other.Key.ID == made.Key.ID || other.Private.Seed() == made.Private.Seed() {
		t.Error("two organizations share a bridge")
	}
	if text := fmt.Sprintf("%v %+v", made, *made); strings.Contains(text, fmt.Sprint(made.Private.Seed())) {
		t.Errorf("the private half is shown: %s", text)
	}
}

// A key that is not active signs nothing more; the next one belongs to the same agent.
func TestBridgeKeyEnds(t *testing.T) {
	w := newWorld(t)
	first := w.bridge(red)
	from := id.Index(1)
	if _, err := w.agents.RevokeKey(t.Context(), red, ann, first.Agent, first.Key.ID, agent.Revocation{CompromisedFrom: &from}); err != nil {
		t.Fatal(err)
	}
	if b := w.active(red); b != nil {
		t.Fatalf("a revoked key: got %v", b.Key.ID)
	}
	second := w.bridge(red)
	if got := w.active(red); got == nil || got.Key.ID != second.Key.ID || got.Agent != first.Agent {
		t.Errorf("got %+v, want the second key of %s", got, first.Agent)
	}
	for key, want := range map[id.Key]id.Index{first.Key.ID: 1, second.Key.ID: tlog.MaxSize} {
		for _, who := range []id.Agent{first.Agent, w.first[red].Agent} { // the bridge signs for all agents
			if got, err := w.agents.CompromisedFrom(t.Context(), w.State(t, red), who, key); err != nil || got != want {
				t.Errorf("%s of %s is compromised from %d, %v; want %d", key, who, got, err, want)
			}
		}
	}
	_, err := w.agents.CompromisedFrom(t.Context(), w.State(t, blue), w.first[blue].Agent, first.Key.ID)
	refused(t, "the other organization's", err, fault.NotFound, "Not found")
	keys, err := w.agents.ListKeys(t.Context(), red, first.Agent, "", 10)
	var states []string
	for _, k := range keys {
		states = append(states, string(k.Status))
	}
	slices.Sort(states)
	if err != nil || !slices.Equal(states, []string{"active", "revoked"}) {
		t.Errorf("keys: got %v, %v", states, err)
	}
}

// Nobody can register a key of their own for a bridge agent.
func TestBridgeAgentTakesNoKey(t *testing.T) {
	w := newWorld(t)
	b := w.bridge(red)
	_, err := w.agents.RegisterKey(t.Context(), red, ann, b.Agent, registration(red, b.Agent, "mine", edkey.NewPrivate()))
	refused(t, "a key for the bridge agent", err, fault.Invalid, "The service generates the keys of a bridge agent")
	_, err = w.agents.RegisterKey(t.Context(), blue, ann, b.Agent, registration(blue, b.Agent, "mine", edkey.NewPrivate()))
	refused(t, "in the other organization", err, fault.NotFound, "Not found")
	_, _, err = w.agents.CreateAgent(t.Context(), blue, ann, agent.Wanted{ID: b.Agent})
	refused(t, "the same agent again", err, fault.Invalid, "agent_id must not begin with agt_, bridge_, system or ledger")
}

func TestBridged(t *testing.T) {
	w := newWorld(t)
	bot := w.first[red].Agent
	yes, no := true, false
	bridged := func(tenant id.Tenant, who id.Agent, want bool) {
		t.Helper()
		if got, err := w.agents.MayUseBridge(t.Context(), w.State(t, tenant), who); err != nil || got != want {
			t.Errorf("%s: got %v, %v; want %v", who, got, err, want)
		}
	}
	bridged(red, bot, false)
	bridged(red, "agt_nobody", false)
	for _, want := range []*bool{&yes, &yes, &no} {
		changed, err := w.agents.Change(t.Context(), red, ann, bot, agent.Patch{Bridge: want})
		if err != nil || changed.Bridge != *want || changed.DisplayName != "first" {
			t.Fatalf("got %+v, %v", changed, err)
		}
		bridged(red, bot, *want)
		bridged(blue, bot, false)
	}
	payload := func(on string) string { return `{"agent_id":"` + string(bot) + `","bridge":` + on + `}` }
	w.wantStatements(red, ledgertest.Statement{Kind: "ledger_agent_changed", Principal: ann, Payload: payload("true")},
		ledgertest.Statement{Kind: "ledger_agent_changed", Principal: ann, Payload: payload("false")})
	_, err := w.agents.Change(t.Context(), blue, ann, bot, agent.Patch{Bridge: &yes})
	refused(t, "the other organization's", err, fault.NotFound, "Not found")
	long := strings.Repeat("x", 257)
	_, err = w.agents.Change(t.Context(), red, ann, bot, agent.Patch{DisplayName: &long})
	refused(t, "a long name", err, fault.Invalid, "display_name must have at most 256 characters, none of them a control character")
	b := w.bridge(red)
	bridged(red, b.Agent, true)
}

// Cached bridges save reads of the store. A store that cannot be read is an error, not an agent without a bridge.
func TestBridgeReads(t *testing.T) {
	w := newWorld(t)
	b := w.bridge(red)
	w.active(red)
	before := w.store.reads.Load()
	for range 100 {
		w.active(red)
	}
	if got := w.store.reads.Load(); got != before {
		t.Errorf("got %d reads", got-before)
	}
	w.store.blind.Store(true)
	_, err := w.agents.MayUseBridge(t.Context(), w.State(t, red), b.Agent)
	refused(t, "blind", err, fault.Unavailable, "Agents and keys can't be read")
	_, err = w.agents.Bridge(t.Context(), w.State(t, blue))
	refused(t, "blind", err, fault.Unavailable, "Agents and keys can't be read")
	w.store.blind.Store(false)
	if b := w.active(blue); b != nil {
		t.Errorf("got %v", b)
	}
}

func TestBridgeKeyIsResealed(t *testing.T) {
	w := newWorld(t)
	b := w.bridge(red)
	sealed := agent.SealedBridgeKey()
	r, err := w.Store.Get(t.Context(), red, sealed.Kind, "")
	if err != nil {
		t.Fatal(err)
	}
	identity := w.State(t, red).Identity().KeyOwner()
	if _, changed, err := sealed.Reseal(w.Keyring(), identity, r.Value); err != nil || changed {
		t.Errorf("sealed under the active key already: %v, %v", changed, err)
	}
	older, newer := seal.NewKey(), seal.NewKey()
	first, err := seal.NewKeyring(older)
	if err != nil {
		t.Fatal(err)
	}
	both, err := seal.NewKeyring(newer, older)
	if err != nil {
		t.Fatal(err)
	}
	seed := b.Private.Seed()
	under, err := first.Seal("bridge-key\n"+identity.Organization.String(), seed[:])
	if err != nil {
		t.Fatal(err)
	}
	value := fmt.Sprintf(`{"agent_id":"%s","key_id":"%s","sealed":"%s"}`, b.Agent, b.Key.ID, encode(under))
	now, changed, err := sealed.Reseal(both, identity, []byte(value))
	if err != nil || !changed {
		t.Fatalf("changed %v, %v", changed, err)
	}
	if _, changed, err = sealed.Reseal(both, identity, now); err != nil || changed {
		t.Errorf("again: changed %v, %v", changed, err)
	}
	if _, _, err = sealed.Reseal(both, w.State(t, blue).Identity().KeyOwner(), now); err == nil {
		t.Error("another organization's key was opened")
	}
	if _, _, err = sealed.Reseal(both, identity, []byte("{")); err == nil {
		t.Error("what is no record was read")
	}
}
