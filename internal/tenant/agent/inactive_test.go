package agent_test

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

func (w *world) setActive(tenant id.Tenant, name id.Agent, active bool) {
	w.t.Helper()
	changed, err := w.agents.Change(w.t.Context(), tenant, ann, name, agent.Patch{Active: &active})
	if err != nil || changed.Inactive == active {
		w.t.Fatalf("got %+v, %v", changed, err)
	}
}

// An inactive agent has its keys, but cannot use them.
func TestSwitchedOffAgent(t *testing.T) {
	w := newWorld(t)
	bot := w.first[red]
	other := w.create(red, "other-bot")
	check := func(when string, off bool) {
		t.Helper()
		err := w.agents.CheckActive(t.Context(), w.State(t, red), bot.Agent)
		k, keyErr := w.signingKey(red, bot.Agent, bot.Key)
		if keyErr != nil || k.Status != agent.Active || k.AgentInactive != off || (err != nil) != off {
			t.Errorf("%s: got %+v, %v, %v", when, k, keyErr, err)
		}
		if off {
			refused(t, when, err, fault.Invalid, "The agent is switched off")
		}
	}
	check("at first", false)
	before := w.State(t, red)
	w.setActive(red, bot.Agent, false)
	w.setActive(red, bot.Agent, false) // stated once
	check("off", true)
	if err := w.agents.CheckActive(t.Context(), before, other.Agent); err != nil {
		t.Errorf("another agent: got %v", err)
	}
	if err := w.agents.CheckActive(t.Context(), w.State(t, blue), w.first[blue].Agent); err != nil {
		t.Errorf("blue: got %v", err)
	}
	_, err := w.agents.MayUseBridge(t.Context(), w.State(t, red), bot.Agent)
	refused(t, "bridge", err, fault.Invalid, "The agent is switched off")
	w.setActive(red, bot.Agent, true)
	check("on again", false)
	if err := w.agents.CheckActive(t.Context(), w.State(t, red), "agt_nobody"); err != nil {
		t.Errorf("unknown: got %v", err)
	}
	no := false
	_, err = w.agents.Change(t.Context(), blue, ann, bot.Agent, agent.Patch{Active: &no})
	refused(t, "blue switches it off", err, fault.NotFound, "Not found")
	statements := w.Audit(t, red)
	want := []ledgertest.Statement{
		{Kind: "ledger_agent_changed", Principal: ann, Payload: `{"active":false,"agent_id":"` + string(bot.Agent) + `"}`},
		{Kind: "ledger_agent_changed", Principal: ann, Payload: `{"active":true,"agent_id":"` + string(bot.Agent) + `"}`},
	}
	if got := statements[len(statements)-2:]; got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// The private half of the first key was never here.
func TestCreateAgentWithKey(t *testing.T) {
	w := newWorld(t)
	private := edkey.NewPrivate()
	make := func(tenant id.Tenant, name id.Agent, r agent.Registration) (agent.Agent, agent.Key, error) {
		return w.agents.CreateAgentWithKey(t.Context(), tenant, ann, agent.Wanted{ID: name}, r)
	}
	made, key, err := make(red, "own-bot", registration(red, "own-bot", "host#1", private))
	if err != nil || made.ID != "own-bot" || key.ID != "host#1" || key.Custody != event.CustodyAgent {
		t.Fatalf("got %+v, %+v, %v", made, key, err)
	}
	if got, err := w.signingKey(red, "own-bot", "host#1"); err != nil || got.Public != private.Public() {
		t.Errorf("got %+v, %v", got, err)
	}
	keys, err := w.agents.ListKeys(t.Context(), red, "own-bot", "", 10)
	if err != nil || len(keys) != 1 {
		t.Errorf("got %+v, %v", keys, err)
	}
	for name, tc := range map[string]struct {
		agent        id.Agent
		registration agent.Registration
		kind         fault.Kind
		message      string
	}{
		"agent taken":     {"own-bot", registration(red, "own-bot", "", edkey.NewPrivate()), fault.Conflict, "agent_id is taken"},
		"key used":        {"other-bot", registration(red, "other-bot", "", private), fault.Conflict, "The public key was used before"},
		"key id used":     {"other-bot", registration(red, "other-bot", "host#1", edkey.NewPrivate()), fault.Conflict, "key_id was used before"},
		"another agent's": {"other-bot", registration(red, "third-bot", "", edkey.NewPrivate()), fault.Invalid, "proof_b64 does not prove possession of the key"},
		"for blue":        {"other-bot", registration(blue, "other-bot", "", edkey.NewPrivate()), fault.Invalid, "proof_b64 does not prove possession of the key"},
		"no proof":        {"other-bot", agent.Registration{PublicKey: private.Public().String()}, fault.Invalid, "proof_b64 must be the base64 of 64 bytes"},
		"no name":         {"", registration(red, "other-bot", "", edkey.NewPrivate()), fault.Invalid, "proof_b64 does not prove possession of the key"},
	} {
		_, _, err := make(red, tc.agent, tc.registration)
		refused(t, name, err, tc.kind, tc.message)
	}
	unnamed, _, err := make(blue, "", registration(blue, "", "", private))
	if err != nil || !strings.HasPrefix(string(unnamed.ID), "agt_") {
		t.Errorf("got %+v, %v", unnamed, err)
	}
}
