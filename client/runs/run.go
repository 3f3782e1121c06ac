// Package runs reports the runs of a tool that has no signing key.
//
// The service signs the events of such a run. It authenticates the caller by the ingest key, which
// needs the scope workflows.
//
// Invariants:
//
//   - A run is started once for each Options.External, however often Start is called.
//   - A step is in the ledger once for each key and attempt, however often it is reported.
//   - Run.Do does not repeat a step that has succeeded, even after a restart.
//
// The methods of a Run are safe for concurrent use, except that Run.Do must not run twice at a time
// for one key. All methods except Run.Do may be repeated after any error.
//
// Errors are those of client.Client.Call; Run.Do also returns a *client.DeniedError.
//
// The package is stable in the sense of README, section Stability.
package runs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// Status is the state of a run.
type Status string

// States. All except Running are final. Abandoned is the end of a run that was silent for too long;
// no tool sends it.
const (
	Running   Status = "running"
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Aborted   Status = "aborted"
	Abandoned Status = "abandoned"
)

// Workflow names the process that a run is an execution of.
type Workflow struct {
	Name    string `json:"name"`
	Version string `json:"version,omitzero"`
	Tool    string `json:"tool,omitzero"`
}

// Options describe a run to start. Only Workflow.Name is required.
type Options struct {
	Workflow Workflow `json:"workflow"`
	// External is the tool's own name of the run. Start with the same ingest key and the same name
	// finds the run again, even after a restart. If "", Start generates a random name.
	External string `json:"external_run_id"`
	// Agent must be enabled for the bridge. If "", it is the organization's bridge agent.
	Agent       id.Agent `json:"agent_id,omitzero"`
	Trace       id.Trace `json:"trace_id,omitzero"`      // if "", the run's ID
	Planned     *int     `json:"planned_steps,omitzero"` // planned number of distinct step keys
	InputDigest *id.Hash `json:"input_digest,omitzero"`
}

// Run is a run at the service. Create it with Start.
type Run struct {
	ID      string
	Trace   id.Trace
	Agent   id.Agent
	Status  Status // at the time of Start
	Resumed bool   // whether the run existed before Start

	client   *client.Client
	progress progress
}

const runsPath = "/v1/ingest/workflows/runs"

func (r *Run) resourcePath() string { return runsPath + "/" + url.PathEscape(r.ID) }

// Start starts a run, or finds the run with the same Options.External in any state. It reads the
// recorded steps of a run that it finds.
func Start(ctx context.Context, c *client.Client, o Options) (*Run, error) {
	if o.External == "" {
		var name [16]byte
		_, _ = rand.Read(name[:])                // never fails
		o.External = fmt.Sprintf("run-%x", name) // so that a retry after a lost answer does not start a second run
	}
	var started struct {
		ID     string        `json:"run_id"`
		Trace  id.Trace      `json:"trace_id"`
		Agent  id.Agent      `json:"agent_id"`
		Status Status        `json:"status"`
		Event  client.Result `json:"event"`
	}
	err := c.Call(ctx, http.MethodPost, runsPath, o, &started)
	if err == nil && (started.ID == "" || started.Status == "") {
		err = malformedAnswer("no run")
	}
	if err != nil {
		return nil, fmt.Errorf("start run: %w", err)
	}
	r := &Run{
		ID: started.ID, Trace: started.Trace, Agent: started.Agent, Status: started.Status,
		Resumed: started.Event.Status == client.Replayed, client: c,
	}
	if r.Resumed {
		err = r.loadProgress(ctx)
	}
	return r, err
}

func malformedAnswer(why string) error {
	return fmt.Errorf("%w: %w", client.ErrAnswer, errors.New(why))
}

// Ending is the end of a run. Status is Succeeded, Failed or Aborted.
type Ending struct {
	Status       Status   `json:"status"`
	OutputDigest *id.Hash `json:"output_digest,omitzero"`
	Error        string   `json:"error,omitzero"` // for humans, at most 1,024 characters
}

// Result summarizes a run, during the run or after its end.
type Result struct {
	Status   Status   `json:"status"`
	Recorded int      `json:"steps_recorded"`  // number of distinct step keys
	Planned  *int     `json:"steps_planned"`   // nil if Options.Planned was nil
	Gap      *int     `json:"gap"`             // Planned minus Recorded; nil before the end
	Events   int      `json:"events_recorded"` // leaves under Root
	Root     *id.Hash `json:"run_root"`        // nil before the end
}

// Complete ends the run. The same ending returns the same result again. If the run has another
// ending, the error is a *client.Error with status 409.
func (r *Run) Complete(ctx context.Context, e Ending) (Result, error) {
	var result Result
	if err := r.client.Call(ctx, http.MethodPost, r.resourcePath()+"/complete", e, &result); err != nil {
		return Result{}, fmt.Errorf("complete run: %w", err)
	}
	return result, nil
}

// Result fetches the state of the run. Errors are those of client.Client.Call.
func (r *Run) Result(ctx context.Context) (Result, error) {
	page, err := r.fetchEventPage(ctx, 0, 1)
	return page.Result, err
}
