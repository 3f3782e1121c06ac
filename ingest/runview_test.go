package ingest

import (
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/workflow"
)

// shownExample returns a run with two steps, of which the second one consumed an approval.
func shownExample() (workflow.Run, workflow.Placed, []workflow.Recorded, []workflow.Event) {
	planned, gap := 3, 1
	run := workflow.Run{ID: "run-1", Status: "succeeded", Agent: "agent-1", Trace: "trace-1",
		Workflow: workflow.Flow{Name: "a \"name\" <&>\t\x01", Version: "2", Tool: "n8n"}, External: "e-1",
		InputDigest: &id.Hash{1}, StartedAt: 1_700_000_000_000, LastAt: 1_700_000_000_001, EndedAt: 1_700_000_000_002,
		Ending: workflow.Ending{OutputDigest: &id.Hash{2}, Error: "none"},
		Result: workflow.Result{Recorded: 2, Events: 3, Planned: &planned, Gap: &gap, Root: id.Hash{3}}}
	started := workflow.Placed{Event: "event-1", Index: 4, Hash: id.Hash{4}, ChainValid: true}
	second := workflow.Placed{Event: "event-2", Index: 5, Hash: id.Hash{5}, Replayed: true}
	recorded := []workflow.Recorded{
		{Policy: event.Policy{Effective: id.Allow, PolicyID: "none"}, Reason: "No policy.", Placed: started},
		{Policy: event.Policy{Effective: id.Deny, PolicyID: "p", RuleID: "r"}, Placed: second,
			Consumed: &workflow.Consumed{Approval: "approval-1", Grant: "note\n"}},
	}
	events := []workflow.Event{
		{Placed: started, Kind: "ledger_run", ReceivedAt: 1_700_000_000_000},
		{Placed: second, Kind: "tool_call", ReceivedAt: 1_700_000_000_001, Decision: id.Deny,
			Step: &workflow.StepShown{Key: "k", Attempt: 2, Tool: "a.b.c", Status: "failed"}},
	}
	return run, started, recorded, events
}

// The exact bytes of the documents of a run.
func TestRunDocuments(t *testing.T) {
	run, started, recorded, events := shownExample()
	bare := run
	bare.Workflow, bare.External, bare.Ending.Error, bare.Result.Root = workflow.Flow{Name: "w"}, "", "", id.Hash{}
	for want, document := range map[string]any{
		`{"run_id":"run-1","trace_id":"trace-1","status":"succeeded","agent_id":"agent-1","event":{"event_id":"event-1","sequence_num":5,"event_hash":"0400000000000000000000000000000000000000000000000000000000000000","chain_valid":true,"status":"created"}}`:                                                                                                                                                                                                                                                                                                                 newStartedRun(&run, &started),
		`[{"decision":"allow","policy_id":"none","rule_id":null,"reason":"No policy.","event":{"event_id":"event-1","sequence_num":5,"event_hash":"0400000000000000000000000000000000000000000000000000000000000000","chain_valid":true,"status":"created"}},{"decision":"deny","policy_id":"p","rule_id":"r","reason":"","event":{"event_id":"event-2","sequence_num":6,"event_hash":"0500000000000000000000000000000000000000000000000000000000000000","chain_valid":false,"status":"replayed"},"approval":{"approval_id":"approval-1","status":"consumed","grant":"note\n"}}]`: newRecordedSteps(recorded),
		`{"run_id":"run-1","status":"succeeded","steps_recorded":2,"steps_planned":3,"gap":1,"events_recorded":3,"run_root":"0300000000000000000000000000000000000000000000000000000000000000"}`:                                                                                                                                                                                                                                                                                                                                                                                  newEndedRun(&run),
		`{"run_id":"run-1","status":"succeeded","agent_id":"agent-1","trace_id":"trace-1","workflow":{"name":"a \"name\" <&>\t\u0001","version":"2","tool":"n8n"},"external_run_id":"e-1","input_digest":"0100000000000000000000000000000000000000000000000000000000000000","output_digest":"0200000000000000000000000000000000000000000000000000000000000000","error":"none","started_at":"2023-11-14T22:13:20.000Z","last_at":"2023-11-14T22:13:20.001Z","ended_at":"2023-11-14T22:13:20.002Z","steps_recorded":2,"steps_planned":3,"gap":1,"events_recorded":3,"run_root":"0300000000000000000000000000000000000000000000000000000000000000","events":[{"event_id":"event-1","action_kind":"ledger_run","sequence_num":5,"event_hash":"0400000000000000000000000000000000000000000000000000000000000000","received_at":"2023-11-14T22:13:20.000Z"},{"event_id":"event-2","action_kind":"tool_call","sequence_num":6,"event_hash":"0500000000000000000000000000000000000000000000000000000000000000","received_at":"2023-11-14T22:13:20.001Z","step_key":"k","attempt":2,"status":"failed","tool_name":"a.b.c","decision":"deny"}],"next":7,"links":{"self":"/v1/ingest/workflows/runs/run-1","steps":"/v1/ingest/workflows/runs/run-1/steps","complete":"/v1/ingest/workflows/runs/run-1/complete","verify":"/v1/public/orgs/red/verify/{event_id}?verify=1"}}`: newShownRun(&run, events, 7, "red"),
		`{"run_id":"run-1","status":"succeeded","agent_id":"agent-1","trace_id":"trace-1","workflow":{"name":"w","version":null,"tool":null},"external_run_id":null,"input_digest":"0100000000000000000000000000000000000000000000000000000000000000","output_digest":"0200000000000000000000000000000000000000000000000000000000000000","error":null,"started_at":"2023-11-14T22:13:20.000Z","last_at":"2023-11-14T22:13:20.001Z","ended_at":"2023-11-14T22:13:20.002Z","steps_recorded":2,"steps_planned":3,"gap":1,"events_recorded":3,"run_root":null,"events":[],"next":null,"links":{"self":"/v1/ingest/workflows/runs/run-1","steps":"/v1/ingest/workflows/runs/run-1/steps","complete":"/v1/ingest/workflows/runs/run-1/complete","verify":"/v1/public/orgs/red/verify/{event_id}?verify=1"}}`:                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                             newShownRun(&bare, nil, 0, "red"),
	} {
		if got, err := json.Marshal(document); err != nil || string(got) != want {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
	}
}
