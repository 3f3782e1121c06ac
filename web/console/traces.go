package console

import (
	"net/url"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

const traceCalls = "/v1/console/traces"

// trace is a trace on a page.
type trace struct{ wire.Trace }

// maxAgents is how many agents of a trace a list shows.
const maxAgents = 5

// SomeAgents returns the first agents.
func (t trace) SomeAgents() []id.Agent { return t.Agents[:min(maxAgents, len(t.Agents))] }

// OtherAgents returns how many agents SomeAgents omits.
func (t trace) OtherAgents() int { return len(t.Agents) - len(t.SomeAgents()) }

// tracesView is the content of the list of traces.
type tracesView struct {
	Traces      []trace
	Next        string
	Filter      filters
	Filtered    bool
	Files       streams
	Predecessor *predecessor
	LogQuery    string
}

func (p *pages) listTraces(r *page.Request) (any, error) {
	names := append(eventFilters(), "limit")
	query := listQuery(r, names...)
	found, err := visitOf(r).Console.ListTraces(r.Context(), visitOf(r).caller, query)
	if err = r.Correctable(err); err != nil {
		return nil, err
	}
	v := &tracesView{Next: r.NextPage(found.Next), Filter: readFilters(r, names...),
		Files: streamsOf(r, traceCalls, query), LogQuery: logQuery(r),
		Predecessor: linkPredecessor(r, found.Predecessor)}
	v.Filtered = len(v.Filter) > 0
	for i := range found.Traces {
		v.Traces = append(v.Traces, trace{found.Traces[i]})
	}
	return v, nil
}

// traceView is the content of a trace's page.
type traceView struct {
	ID          string
	Tree        []*node // the roots
	Shown       int     // number of events on this page
	FirstAt     id.Instant
	LastAt      id.Instant
	Next        string
	IsFirst     bool
	EventsURL   string
	Predecessor *predecessor
	MayErase    bool
}

// maxSteps is how many events of a trace one page shows.
const maxSteps = "300"

func (p *pages) showTrace(r *page.Request) (any, error) {
	name := r.PathParameter("trace")
	r.Title = "Trace " + name
	query := r.ListQuery("log")
	query.Set("limit", maxSteps)
	found, err := visitOf(r).Console.ShowTrace(r.Context(), visitOf(r).caller, name, query)
	if err != nil {
		return nil, err
	}
	steps := make([]step, len(found.Events))
	for i := range found.Events {
		steps[i] = step{found.Events[i], r.Address("/console/events", string(found.Events[i].ID)) + logQuery(r)}
	}
	v := &traceView{ID: name, Tree: growTree(steps), Shown: len(found.Events), Next: r.NextPage(found.Next),
		IsFirst: r.Query("after") == "", Predecessor: linkPredecessor(r, found.Predecessor),
		EventsURL: r.Address("/console/events") + "?" + url.Values{"trace_id": {name}}.Encode(),
		MayErase:  r.Person.May("own")}
	if n := len(found.Events); n > 0 {
		v.FirstAt, v.LastAt = found.Events[0].ReceivedAt, found.Events[n-1].ReceivedAt
	}
	return v, nil
}
