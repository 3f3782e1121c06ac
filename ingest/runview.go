package ingest

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/wire"
)

// startedRun is the response to a run's start.
type startedRun struct {
	ID     workflow.ID     `json:"run_id"`
	Trace  id.Trace        `json:"trace_id"`
	Status workflow.Status `json:"status"`
	Agent  id.Agent        `json:"agent_id"`
	Event  placedEvent     `json:"event"`
}

func newStartedRun(run *workflow.Run, started *workflow.Placed) startedRun {
	return startedRun{ID: run.ID, Trace: run.Trace, Status: run.Status, Agent: run.Agent, Event: newPlacedEvent(started)}
}

// placedEvent is the position of an event, with the members of event ingest.
type placedEvent struct {
	ID         id.Event `json:"event_id"`
	Sequence   uint64   `json:"sequence_num"`
	Hash       id.Hash  `json:"event_hash"`
	ChainValid bool     `json:"chain_valid"`
	Status     string   `json:"status"`
}

func newPlacedEvent(p *workflow.Placed) placedEvent {
	e := placedEvent{ID: p.Event, Sequence: p.Index.Sequence(), Hash: p.Hash, ChainValid: p.ChainValid, Status: "created"}
	if p.Replayed {
		e.Status = "replayed"
	}
	return e
}

// recordedStep is the response to a step.
type recordedStep struct {
	Decision id.Decision       `json:"decision"`
	PolicyID wire.Text         `json:"policy_id"`
	RuleID   wire.Text         `json:"rule_id"`
	Reason   string            `json:"reason"`
	Event    placedEvent       `json:"event"`
	Approval *consumedApproval `json:"approval,omitzero"` // that the step consumed
}

// consumedApproval is an approval that a step consumed. The grant is null if it has expired.
type consumedApproval struct {
	ID     approval.ID `json:"approval_id"`
	Status string      `json:"status"`
	Grant  wire.Text   `json:"grant"`
}

func newRecordedSteps(all []workflow.Recorded) []recordedStep {
	steps := make([]recordedStep, len(all))
	for i := range all {
		r := &all[i]
		steps[i] = recordedStep{Decision: r.Policy.Effective, PolicyID: wire.Text(r.Policy.PolicyID),
			RuleID: wire.Text(r.Policy.RuleID), Reason: r.Reason, Event: newPlacedEvent(&r.Placed)}
		if c := r.Consumed; c != nil {
			steps[i].Approval = &consumedApproval{ID: c.Approval, Status: "consumed", Grant: wire.Text(c.Grant)}
		}
	}
	return steps
}

// endedRun is the response to a run's end.
type endedRun struct {
	ID     workflow.ID     `json:"run_id"`
	Status workflow.Status `json:"status"`
	runResult
}

func newEndedRun(run *workflow.Run) endedRun {
	return endedRun{ID: run.ID, Status: run.Status, runResult: newRunResult(run)}
}

// runResult is the result of a run, or its counts so far.
type runResult struct {
	Recorded int      `json:"steps_recorded"`
	Planned  *int     `json:"steps_planned"`
	Gap      *int     `json:"gap"`
	Events   int      `json:"events_recorded"`
	Root     *id.Hash `json:"run_root"`
}

func newRunResult(run *workflow.Run) runResult {
	r := run.Result
	shown := runResult{Recorded: r.Recorded, Planned: r.Planned, Gap: r.Gap, Events: r.Events}
	if r.Root != (id.Hash{}) {
		shown.Root = &r.Root
	}
	return shown
}

// shownRun is a run with some of its events.
type shownRun struct {
	ID           workflow.ID     `json:"run_id"`
	Status       workflow.Status `json:"status"`
	Agent        id.Agent        `json:"agent_id"`
	Trace        id.Trace        `json:"trace_id"`
	Workflow     wire.Workflow   `json:"workflow"`
	External     wire.Text       `json:"external_run_id"`
	InputDigest  *id.Hash        `json:"input_digest"`
	OutputDigest *id.Hash        `json:"output_digest"`
	Error        wire.Text       `json:"error"`
	StartedAt    wire.Time       `json:"started_at"`
	LastAt       wire.Time       `json:"last_at"`
	EndedAt      wire.Time       `json:"ended_at"`
	runResult
	Page  []wire.RunEvent `json:"events"`
	Next  wire.Number     `json:"next"`
	Links runLinks        `json:"links"`
}

func newShownRun(run *workflow.Run, events []workflow.Event, next int, slug id.Slug) shownRun {
	s := shownRun{
		ID: run.ID, Status: run.Status, Agent: run.Agent, Trace: run.Trace,
		Workflow: wire.Workflow{Name: run.Workflow.Name, Version: wire.Text(run.Workflow.Version), Tool: wire.Text(run.Workflow.Tool)},
		External: wire.Text(run.External), InputDigest: run.InputDigest, OutputDigest: run.Ending.OutputDigest,
		Error: wire.Text(run.Ending.Error), StartedAt: wire.Time(run.StartedAt), LastAt: wire.Time(run.LastAt),
		EndedAt: wire.Time(run.EndedAt), runResult: newRunResult(run), Page: make([]wire.RunEvent, len(events)),
		Next: wire.Number(next), Links: newRunLinks(run.ID, slug),
	}
	for i := range events {
		s.Page[i] = newRunEvent(&events[i])
	}
	return s
}

func newRunEvent(e *workflow.Event) wire.RunEvent {
	shown := wire.RunEvent{ID: e.Event, Kind: e.Kind, Sequence: e.Index.Sequence(), Hash: e.Hash, ReceivedAt: e.ReceivedAt}
	if step := e.Step; step != nil {
		shown.RunStep = &wire.RunStep{Key: step.Key, Attempt: step.Attempt, Status: step.Status, Tool: wire.Text(step.Tool),
			Decision: e.Decision.String()}
	}
	return shown
}

// runLinks are the addresses of a run and of the verification of its events, where {event_id} stands for an event's ID.
type runLinks struct {
	Self     string `json:"self"`
	Steps    string `json:"steps"`
	Complete string `json:"complete"`
	Verify   string `json:"verify"`
}

func newRunLinks(name workflow.ID, slug id.Slug) runLinks {
	self := "/v1/ingest/workflows/runs/" + string(name)
	return runLinks{Self: self, Steps: self + "/steps", Complete: self + "/complete",
		Verify: "/v1/public/orgs/" + string(slug) + "/verify/{event_id}?verify=1"}
}
