package console

import (
	"net/url"

	"github.com/agentledger/agentledger/web/page"
	"github.com/agentledger/agentledger/web/screen"
)

const runCalls = "/v1/console/runs"

// run is a run of an automation tool.
type run struct {
	ID        string `json:"run_id"`
	Status    string `json:"status"`
	Agent     string `json:"agent_id"`
	Trace     string `json:"trace_id"`
	IngestKey string `json:"ingest_key_id"`
	Workflow  struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		Tool    string `json:"tool"`
	} `json:"workflow"`
	ExternalID   string `json:"external_run_id"`
	InputDigest  string `json:"input_digest"`
	OutputDigest string `json:"output_digest"`
	Error        string `json:"error"`
	StartedAt    string `json:"started_at"`
	LastAt       string `json:"last_at"`
	EndedAt      string `json:"ended_at"`
	Steps        int    `json:"steps_recorded"`
	Planned      *int   `json:"steps_planned"`
	Gap          *int   `json:"gap"`
	Events       int    `json:"events_recorded"`
	Root         string `json:"run_root"`
}

// runEvent is an event of a run. StepKey is empty for the begin and the end.
type runEvent struct {
	ID         string `json:"event_id"`
	Kind       string `json:"action_kind"`
	Sequence   uint64 `json:"sequence_num"`
	ReceivedAt string `json:"received_at"`
	StepKey    string `json:"step_key"`
	Attempt    int    `json:"attempt"`
	Status     string `json:"status"`
	Tool       string `json:"tool_name"`
	Decision   string `json:"decision"`
}

// runsView is the content of the list of runs.
type runsView struct {
	Runs     []run
	Next     string
	Filter   filters
	Filtered bool
	Statuses []page.Option
}

func (p *pages) listRuns(r *screen.Request) (any, error) {
	var found struct {
		Runs []run  `json:"runs"`
		Next string `json:"next"`
	}
	if err := r.ReadList(runCalls, r.ListQuery("status", "agent_id"), &found); err != nil {
		return nil, err
	}
	v := &runsView{Runs: found.Runs, Next: r.NextPage(found.Next), Filter: readFilters(r, "status", "agent_id"),
		Statuses: []page.Option{{Value: "", Title: "any"}}}
	v.Filtered = len(v.Filter) > 0
	for _, s := range []string{"running", "succeeded", "failed", "aborted", "abandoned"} {
		v.Statuses = append(v.Statuses, page.Option{Value: s, Title: s})
	}
	return v, nil
}

// runView is the content of the page of a run.
type runView struct {
	run
	Of   []runEvent
	Next string
}

func (p *pages) showRun(r *screen.Request) (any, error) {
	var found struct {
		run
		Events []runEvent `json:"events"`
		Next   *int       `json:"next"`
	}
	if err := r.ReadList(runCalls+"/"+url.PathEscape(r.PathParameter("run")), r.PageQuery(), &found); err != nil {
		return nil, err
	}
	v := &runView{run: found.run, Of: found.Events}
	if found.Next != nil {
		v.Next = r.NextPage(decimal(*found.Next))
	}
	r.Title = "Run of " + v.Workflow.Name
	return v, nil
}
