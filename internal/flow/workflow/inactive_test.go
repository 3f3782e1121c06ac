package workflow_test

import (
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/tenant/agent"
)

// The bridge signs nothing for a disabled agent.
func TestAgentSwitchedOff(t *testing.T) {
	const off = "The agent is switched off"
	w := newWorld(t)
	w.enable(red, true)
	b := beginning("one")
	b.Agent = w.bot[red]
	run := w.start(red, b)
	w.record(red, run.ID, step("a"))
	no := false
	if _, err := w.agents.Change(t.Context(), red, "acc_ann", w.bot[red], agent.Patch{Active: &no}); err != nil {
		t.Fatal(err)
	}
	next := beginning("two")
	next.Agent = w.bot[red]
	_, _, _, err := w.workflows.Start(t.Context(), red, next)
	wantFault(t, "start", err, fault.Invalid, off)
	_, err = w.workflows.Record(t.Context(), red, b.IngestKeyID, run.ID, []workflow.Step{step("b")})
	wantFault(t, "step", err, fault.Invalid, off)
	w.complete(red, run.ID)
	w.start(red, beginning("three")) // by the bridge agent itself
}
