package agent_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/storage"
)

const (
	activeKeys = "The agent has 100 active keys, as many as it may have: retire or revoke one first"
	allKeys    = "The agent has 1000 keys, as many as it may ever have: make another agent"
)

// plan is the limits of organizations.
type plan map[id.Tenant]quota.Limits

func (p plan) Limits(_ context.Context, t id.Tenant) (quota.Limits, error) { return p[t], nil }

// bounded gives the world's agents limits.
func (w *world) bounded(p plan) {
	w.agents = agent.New(agent.Options{
		Records: w.store, Events: w.SystemEvents, Keyring: w.Keyring(), Clock: w.Clock,
		Quota: &quota.Quota{Records: w.store, Clock: w.Clock, Plan: p.Limits},
	})
}

// store writes n keys of an agent, as an older version without limits did.
func (w *world) storeKeys(tenant id.Tenant, name id.Agent, n int, status agent.Status) {
	w.t.Helper()
	var changes []storage.Change
	for i := range n {
		value, err := json.Marshal(map[string]any{
			"key_id": fmt.Sprintf("%s-%05d", status, i), "public_key": did.Multikey(edkey.NewPrivate().Public().Bytes()),
			"custody": "agent", "status": status, "order": 1, "registered_at": id.InstantOf(w.Clock()),
		})
		if err != nil {
			w.t.Fatal(err)
		}
		changes = append(changes, storage.Change{Kind: "agent_key", Key: fmt.Sprintf("%s/%s-%05d", name, status, i), Value: value})
	}
	if err := w.Store.Write(w.t.Context(), tenant, changes); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) tryRegister(tenant id.Tenant, name id.Agent, key id.Key) error {
	_, err := w.agents.RegisterKey(w.t.Context(), tenant, ann, name, registration(tenant, name, key, edkey.NewPrivate()))
	return err
}

func TestActiveKeysOfAnAgent(t *testing.T) {
	w := newWorld(t)
	bot := w.first[red].Agent // it has one key
	w.storeKeys(red, bot, 98, agent.Active)
	if err := w.tryRegister(red, bot, "the-100th"); err != nil {
		t.Fatal(err)
	}
	refused(t, "the 101st", w.tryRegister(red, bot, "more"), fault.Conflict, activeKeys)
	if err := w.tryRegister(blue, w.first[blue].Agent, "theirs"); err != nil {
		t.Errorf("the other organization: %v", err)
	}
	if err := w.step("retire", red, bot, "the-100th"); err != nil {
		t.Fatal(err)
	}
	if err := w.tryRegister(red, bot, "in-its-place"); err != nil {
		t.Errorf("after one was retired: %v", err)
	}
}

func TestAllKeysOfAnAgent(t *testing.T) {
	w := newWorld(t)
	bot := w.first[red].Agent
	w.storeKeys(red, bot, 998, agent.Retired)
	if err := w.tryRegister(red, bot, "the-1000th"); err != nil {
		t.Fatal(err)
	}
	refused(t, "the 1001st", w.tryRegister(red, bot, "more"), fault.Conflict, allKeys)
	if err := w.step("revoke", red, bot, "the-1000th"); err != nil {
		t.Errorf("revoking at the bound: %v", err)
	}
	refused(t, "a revoked one counts", w.tryRegister(red, bot, "more"), fault.Conflict, allKeys)
}

// An agent that has more keys from before keeps them and gets no more.
func TestKeysFromBefore(t *testing.T) {
	w := newWorld(t)
	bot := w.first[red].Agent
	w.storeKeys(red, bot, 3000, agent.Active)
	w.hasStatus(red, bot, "active-02999", agent.Active)
	refused(t, "one more", w.tryRegister(red, bot, "more"), fault.Conflict, allKeys)
	if keys, err := w.agents.DIDKeys(t.Context(), red, bot); err != nil || len(keys) != 3001 {
		t.Errorf("got %d keys, %v; want 3001", len(keys), err)
	}
	if err := w.step("revoke", red, bot, "active-00000"); err != nil {
		t.Errorf("revoke: %v", err)
	}
}

// Of many concurrent calls, one gets the last place.
func TestLastKeyOnce(t *testing.T) {
	w := newWorld(t)
	bot := w.first[red].Agent
	w.storeKeys(red, bot, 98, agent.Active)
	var made, full atomic.Int64
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			err := w.tryRegister(red, bot, id.Key(fmt.Sprint("k", i)))
			switch {
			case err == nil:
				made.Add(1)
			case fault.Of(err).Message == activeKeys:
				full.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if made.Load() != 1 || full.Load() != 7 {
		t.Errorf("got %d made and %d refused, want 1 and 7", made.Load(), full.Load())
	}
}

// The keys in a list were checked when they were registered, and are not checked again: a document of a thousand keys
// would cost as much as a thousand signatures. A key that verifies signatures is checked.
func TestListedKeysAreNotCheckedAgain(t *testing.T) {
	w := newWorld(t)
	bot := w.first[red].Agent
	weak := [32]byte{0: 1} // a point of small order
	if _, err := edkey.ParsePublic(weak[:]); err == nil {
		t.Fatal("the bytes are a key")
	}
	value, err := json.Marshal(map[string]any{"key_id": "odd", "public_key": did.Multikey(weak), "custody": "agent", "status": "active", "order": 9, "registered_at": id.InstantOf(w.Clock())})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Store.Write(t.Context(), red, []storage.Change{{Kind: "agent_key", Key: string(bot) + "/odd", Value: value}}); err != nil {
		t.Fatal(err)
	}
	if keys, err := w.agents.DIDKeys(t.Context(), red, bot); err != nil || len(keys) != 2 {
		t.Errorf("DID keys: got %d, %v; want both, unchecked", len(keys), err)
	}
	_, err = w.signingKey(red, bot, "odd")
	refused(t, "signing key", err, fault.Unavailable, "Agents and keys can't be read")
}

func TestAgentsOfAPlan(t *testing.T) {
	w := newWorld(t)
	w.bounded(plan{red: {Agents: 3}})
	const full = "The organization has 3 agents, as many as its plan allows"
	var made, refusals atomic.Int64
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() {
			_, _, err := w.agents.CreateAgent(t.Context(), red, ann, agent.Wanted{ID: id.Agent(fmt.Sprint("bot-", i))})
			switch {
			case err == nil:
				made.Add(1)
			case fault.Of(err).Message == full && fault.Of(err).Code == "plan_limit":
				refusals.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if made.Load() != 2 || refusals.Load() != 4 { // in addition to the first one
		t.Errorf("got %d made and %d refused, want 2 and 4", made.Load(), refusals.Load())
	}
	for range 5 {
		w.create(blue, "")
	}
	w.bridge(red) // the limit does not apply to the service's own agent
	for tenant, want := range map[id.Tenant]uint64{red: 3, blue: 6} {
		if n, err := w.agents.Count(t.Context(), tenant); err != nil || n != want {
			t.Errorf("agents of %d: got %d, %v; want %d", tenant, n, err, want)
		}
	}
	w.bounded(plan{red: {Agents: 3}}) // as after a restart
	_, _, err := w.agents.CreateAgent(t.Context(), red, ann, agent.Wanted{})
	refused(t, "after a restart", err, fault.Conflict, full)
}

// Changes by people are limited by rate; making keys unusable never is.
func TestPacedChanges(t *testing.T) {
	w := newWorld(t)
	w.bounded(plan{red: {StatementsPerMinute: 2}, blue: {StatementsPerMinute: 2}})
	bot := w.create(red, "busy-bot")
	w.register(red, bot.Agent, "second", edkey.NewPrivate())
	const slower = "Too many changes: at most 2 in a minute"
	name := "renamed"
	_, _, err := w.agents.CreateAgent(t.Context(), red, ann, agent.Wanted{})
	refused(t, "create", err, fault.RateLimited, slower)
	_, err = w.agents.Change(t.Context(), red, ann, bot.Agent, agent.Patch{DisplayName: &name})
	refused(t, "change", err, fault.RateLimited, slower)
	refused(t, "register", w.tryRegister(red, bot.Agent, "third"), fault.RateLimited, slower)
	for step, key := range map[string]id.Key{"retire": bot.Key, "revoke": "second"} {
		if err := w.step(step, red, bot.Agent, key); err != nil {
			t.Errorf("%s: %v", step, err)
		}
	}
	w.create(blue, "their-bot")
}
