package approval_test

import (
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/tenant/agent"
)

// A disabled agent cannot ask for approval, and cannot consume an earlier one.
func TestAgentSwitchedOff(t *testing.T) {
	w := newWorld(t)
	a, mine := w.ask(red, w.question(red)), w.ask(blue, w.question(blue))
	w.approve(red, a, bob)
	w.approve(blue, mine, bob)
	set := func(active bool) {
		t.Helper()
		if _, err := w.agents.Change(t.Context(), red, "acc_ann", w.keys[red].Agent, agent.Patch{Active: &active}); err != nil {
			t.Fatal(err)
		}
	}
	consume := func() error {
		_, err := w.approvals.Consume(t.Context(), red, a.ID, w.claim(red, a))
		return err
	}
	set(false)
	q := w.question(red)
	q.Trace = "trc_2"
	_, _, err := w.approvals.Ask(t.Context(), red, q)
	for what, err := range map[string]error{"ask": err, "consume": consume()} {
		if got := fault.Of(err); err == nil || got.Kind != fault.Invalid || got.Code != "agent_inactive" {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if _, err := w.approvals.Consume(t.Context(), blue, mine.ID, w.claim(blue, mine)); err != nil {
		t.Errorf("blue: got %v", err)
	}
	set(true)
	if err := consume(); err != nil {
		t.Errorf("on again: got %v", err)
	}
}
