package client

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// RunStatus is where a run stands.
type RunStatus string

// The states. All but the first are final; nobody asks for the last, which is the end
// of a run that was silent for too long.
const (
	RunRunning   RunStatus = "running"
	RunSucceeded RunStatus = "succeeded"
	RunFailed    RunStatus = "failed"
	RunAborted   RunStatus = "aborted"
	RunAbandoned RunStatus = "abandoned"
)

// Workflow is what a run is a run of.
type Workflow struct {
	Name    string `json:"name"`
	Version string `json:"version,omitzero"`
	Tool    string `json:"tool,omitzero"`
}

// RunStart is what a tool says of a run that it starts. Workflow.Name is the only
// required field.
type RunStart struct {
	Workflow Workflow `json:"workflow"`
	// External is what the tool calls the run: the same ingest key finds it again by
	// this, after a restart too. "" stands for a new name each time.
	External    string   `json:"external_run_id"`
	Agent       id.Agent `json:"agent_id,omitzero"`      // one that the bridge is enabled for; "": the organization's bridge agent
	Trace       id.Trace `json:"trace_id,omitzero"`      // "": the run's id
	Planned     *int     `json:"planned_steps,omitzero"` // different step_keys to come
	InputDigest *id.Hash `json:"input_digest,omitzero"`
}

// Run is a run of a tool that holds no key: the service signs its events, on the word
// of whoever has the ingest key, which needs the scope workflows. Its methods may be
// called concurrently; all but Do may be repeated after any error.
type Run struct {
	ID      string
	Trace   id.Trace
	Agent   id.Agent
	Status  RunStatus // when it was started, or found again
	Resumed bool      // it was there before

	client   *Client
	progress progress
}

const runsPath = "/v1/ingest/workflows/runs"

func (r *Run) path() string { return runsPath + "/" + url.PathEscape(r.ID) }

// StartRun starts a run, or finds the one that was started under the same External,
// however it stands; then it reads what was recorded of it.
func (c *Client) StartRun(ctx context.Context, s RunStart) (*Run, error) {
	if s.External == "" {
		s.External = "run-" + hex.EncodeToString(random()) // so that a lost answer makes no second run
	}
	body, err := jcs.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("start run: encode: %w", err)
	}
	answer, err := c.do(ctx, call{method: http.MethodPost, path: runsPath, body: body, ingest: true})
	if err != nil {
		return nil, fmt.Errorf("start run: %w", err)
	}
	var started struct {
		ID     string    `json:"run_id"`
		Trace  id.Trace  `json:"trace_id"`
		Agent  id.Agent  `json:"agent_id"`
		Status RunStatus `json:"status"`
		Event  Result    `json:"event"`
	}
	err = decode(answer, &started)
	if err == nil && (started.ID == "" || started.Status == "") {
		err = badAnswer(errors.New("no run"))
	}
	if err != nil {
		return nil, fmt.Errorf("start run: %w", err)
	}
	r := &Run{
		ID: started.ID, Trace: started.Trace, Agent: started.Agent, Status: started.Status,
		Resumed: started.Event.Status == Replayed, client: c,
	}
	if r.Resumed {
		err = r.catchUp(ctx)
	}
	return r, err
}

// RunEnd is how a run ends. Status is succeeded, failed or aborted.
type RunEnd struct {
	Status       RunStatus `json:"status"`
	OutputDigest *id.Hash  `json:"output_digest,omitzero"`
	Error        string    `json:"error,omitzero"` // for people, at most 1,024 characters
}

// RunResult is what a run comes to, or has come to so far.
type RunResult struct {
	Status   RunStatus `json:"status"`
	Recorded int       `json:"steps_recorded"`  // different step_keys
	Planned  *int      `json:"steps_planned"`   // nil when that was not told
	Gap      *int      `json:"gap"`             // Planned less Recorded, nil before the end
	Events   int       `json:"events_recorded"` // leaves under Root
	Root     *id.Hash  `json:"run_root"`        // nil before the end
}

// Complete ends the run. Repeated with the same ending it answers the same; a run that
// has ended otherwise is an *Error of status 409.
func (r *Run) Complete(ctx context.Context, e RunEnd) (RunResult, error) {
	body, err := jcs.Marshal(e)
	if err != nil {
		return RunResult{}, fmt.Errorf("complete run: encode: %w", err)
	}
	answer, err := r.client.do(ctx, call{method: http.MethodPost, path: r.path() + "/complete", body: body, ingest: true})
	if err != nil {
		return RunResult{}, fmt.Errorf("complete run: %w", err)
	}
	var result RunResult
	if err := decode(answer, &result); err != nil {
		return RunResult{}, fmt.Errorf("complete run: %w", err)
	}
	return result, nil
}

// Result tells what the run has come to so far.
func (r *Run) Result(ctx context.Context) (RunResult, error) {
	page, err := r.page(ctx, 0, 1)
	return page.RunResult, err
}
