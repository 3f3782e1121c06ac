package ingest

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/flow/workflow"
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
	PolicyID *string           `json:"policy_id"`
	RuleID   *string           `json:"rule_id"`
	Reason   string            `json:"reason"`
	Event    placedEvent       `json:"event"`
	Approval *consumedApproval `json:"approval,omitzero"` // that the step consumed
}

// consumedApproval is an approval that a step consumed. The grant is null if it has expired.
type consumedApproval struct {
	ID     approval.ID `json:"approval_id"`
	Status string      `json:"status"`
	Grant  *string     `json:"grant"`
}

func newRecordedSteps(all []workflow.Recorded) []recordedStep {
	steps := make([]recordedStep, len(all))
	for i := range all {
		r := &all[i]
		steps[i] = recordedStep{Decision: r.Policy.Effective, PolicyID: orNull(r.Policy.PolicyID),
			RuleID: orNull(r.Policy.RuleID), Reason: r.Reason, Event: newPlacedEvent(&r.Placed)}
		if c := r.Consumed; c != nil {
			steps[i].Approval = &consumedApproval{ID: c.Approval, Status: "consumed", Grant: orNull(c.Grant)}
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
	r := &run.Result
	return runResult{Recorded: r.Recorded, Planned: r.Planned, Gap: r.Gap, Events: r.Events, Root: orNull(r.Root)}
}

// shownRun is a run with some of its events.
type shownRun struct {
	ID       workflow.ID     `json:"run_id"`
	Status   workflow.Status `json:"status"`
	Agent    id.Agent        `json:"agent_id"`
	Trace    id.Trace        `json:"trace_id"`
	Workflow struct {
		Name    string  `json:"name"`
		Version *string `json:"version"`
		Tool    *string `json:"tool"`
	} `json:"workflow"`
	External     *string     `json:"external_run_id"`
	InputDigest  *id.Hash    `json:"input_digest"`
	OutputDigest *id.Hash    `json:"output_digest"`
	Error        *string     `json:"error"`
	StartedAt    *id.Instant `json:"started_at"`
	LastAt       *id.Instant `json:"last_at"`
	EndedAt      *id.Instant `json:"ended_at"`
	runResult
	ShownEvents []runEvent `json:"events"`
	Next        *int       `json:"next"`
	Links       runLinks   `json:"links"`
}

func newShownRun(run *workflow.Run, events []workflow.Event, next int, slug id.Slug) shownRun {
	s := shownRun{ID: run.ID, Status: run.Status, Agent: run.Agent, Trace: run.Trace,
		External: orNull(run.External), InputDigest: run.InputDigest, OutputDigest: run.Ending.OutputDigest,
		Error: orNull(run.Ending.Error), StartedAt: orNull(run.StartedAt), LastAt: orNull(run.LastAt),
		EndedAt: orNull(run.EndedAt), runResult: newRunResult(run), ShownEvents: make([]runEvent, len(events)),
		Next: orNull(next), Links: newRunLinks(run.ID, slug)}
	s.Workflow.Name = run.Workflow.Name
	s.Workflow.Version, s.Workflow.Tool = orNull(run.Workflow.Version), orNull(run.Workflow.Tool)
	for i := range events {
		s.ShownEvents[i] = newRunEvent(&events[i])
	}
	return s
}

// runEvent is an event of a run.
type runEvent struct {
	ID         id.Event    `json:"event_id"`
	Kind       string      `json:"action_kind"`
	Sequence   uint64      `json:"sequence_num"`
	Hash       id.Hash     `json:"event_hash"`
	ReceivedAt *id.Instant `json:"received_at"`
	*runStep               // nil for the events of a run's start and end
}

// runStep is the step that an event of a run belongs to.
type runStep struct {
	Key      string      `json:"step_key"`
	Attempt  int         `json:"attempt"`
	Status   string      `json:"status"`
	Tool     *id.Tool    `json:"tool_name"`
	Decision id.Decision `json:"decision"`
}

func newRunEvent(e *workflow.Event) runEvent {
	shown := runEvent{ID: e.Event, Kind: e.Kind, Sequence: e.Index.Sequence(), Hash: e.Hash, ReceivedAt: orNull(e.ReceivedAt)}
	if e.Step != nil {
		shown.runStep = &runStep{Key: e.Step.Key, Attempt: e.Step.Attempt, Status: e.Step.Status,
			Tool: orNull(e.Step.Tool), Decision: e.Decision}
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

// orNull returns a pointer to v, or nil, which is null in JSON, if v is zero.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
