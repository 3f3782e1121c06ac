package wire

import "github.com/agentledger/agentledger/id"

// Run is a run of an automation tool.
type Run struct {
	ID           string     `json:"run_id"`
	Status       string     `json:"status"`
	Agent        id.Agent   `json:"agent_id"`
	Trace        id.Trace   `json:"trace_id"`
	IngestKey    string     `json:"ingest_key_id"`
	Workflow     Workflow   `json:"workflow"`
	ExternalID   Text       `json:"external_run_id"`
	InputDigest  *id.Hash   `json:"input_digest"`
	OutputDigest *id.Hash   `json:"output_digest"`
	Error        Text       `json:"error"`
	StartedAt    id.Instant `json:"started_at"`
	LastAt       id.Instant `json:"last_at"`
	EndedAt      Time       `json:"ended_at"`
	Steps        int        `json:"steps_recorded"`
	Planned      *int       `json:"steps_planned"`
	Gap          *int       `json:"gap"`
	Events       int        `json:"events_recorded"`
	Root         *id.Hash   `json:"run_root"`
}

// Workflow names the workflow of a run and the tool that runs it.
type Workflow struct {
	Name    string `json:"name"`
	Version Text   `json:"version"`
	Tool    Text   `json:"tool"`
}

// Runs is a page of the list of runs.
type Runs struct {
	Runs []Run `json:"runs"`
	Next Text  `json:"next"`
}

// RunDetail is a run with a page of its events.
type RunDetail struct {
	Run    `json:",inline"`
	Events []RunEvent `json:"events"`
	Next   Number     `json:"next"`
}

// RunEvent is an event of a run. The events that begin and end the run have no step.
type RunEvent struct {
	ID         id.Event   `json:"event_id"`
	Kind       string     `json:"action_kind"`
	Sequence   uint64     `json:"sequence_num"`
	Hash       id.Hash    `json:"event_hash"`
	ReceivedAt id.Instant `json:"received_at"`
	*RunStep
	Act *ActLink `json:"act,omitzero"` // only in the console; nil if the event is about none
}

// RunStep is the step that an event of a run records.
type RunStep struct {
	Key      string `json:"step_key"`
	Attempt  int    `json:"attempt"`
	Status   string `json:"status"`
	Tool     Text   `json:"tool_name"`
	Decision string `json:"decision"`
}
