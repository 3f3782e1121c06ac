package index

import (
	"context"
	"fmt"
	"iter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Trace is the events of one trace, counted.
type Trace struct {
	ID          id.Trace
	First, Last Row
	Events      int // of maxTraceEvents at most, the newest ones
	Complete    bool
	Decisions   map[id.Decision]int // effective
	Agents      []id.Agent          // in the order in which they came, the newest first
}

// maxTraceEvents is how many events of a trace are counted.
const maxTraceEvents = 1000

// TracePage is a page of a list of traces.
type TracePage struct {
	Traces []Trace
	Next   *id.Index // the newest event of the last trace; nil when the page reached the end
	End    id.Index
}

// Traces returns a page of the traces in which an event is wanted, newest first. A trace stands at its
// newest event that is wanted.
func (x *Index) Traces(ctx context.Context, t id.Tenant, q Query) (page TracePage, err error) {
	if err := q.Check(); err != nil {
		return TracePage{}, err
	}
	q.Text, q.Ascending = "", false
	err = x.inView(ctx, t, func(s *log.State, v *view) error {
		page, err = x.tracesIn(ctx, s, v, &q)
		return err
	})
	return page, err
}

func (x *Index) tracesIn(ctx context.Context, s *log.State, v *view, q *Query) (TracePage, error) {
	spans, err := x.spansOf(ctx, s, v, &q.Filter)
	if err != nil {
		return TracePage{}, err
	}
	page := TracePage{End: v.end}
	seen := make(map[id.Trace]bool)
	looked := 0
	for c, err := range x.candidates(ctx, v, q.wanted(), q.spansBehind(spans), false) {
		if err != nil {
			return TracePage{}, err
		}
		row, err := x.rowOf(ctx, s, c)
		if err != nil {
			return TracePage{}, err
		}
		if looked++; q.matches(&row) && !seen[row.Trace] {
			seen[row.Trace] = true
			found, stands, err := x.countTrace(ctx, s, v, q, &row, spans)
			if err != nil {
				return TracePage{}, err
			}
			if stands && len(page.Traces) == q.Limit {
				return page, nil
			}
			if stands {
				page.Traces = append(page.Traces, found)
			}
		}
		at := row.Index
		if page.Next = &at; looked >= maxRead {
			return page, nil
		}
	}
	page.Next = nil
	return page, nil
}

// countTrace counts the trace of a wanted row. The trace stands at the row unless a newer event of the
// trace is wanted too.
func (x *Index) countTrace(ctx context.Context, s *log.State, v *view, q *Query, at *Row,
	spans []span) (found Trace, stands bool, err error) {
	found = Trace{ID: at.Trace, Complete: true, Decisions: make(map[id.Decision]int)}
	agents := make(map[id.Agent]bool)
	for row, err := range x.traceRows(ctx, s, v, at.Trace, false) {
		if err != nil {
			return found, false, err
		}
		if row.Index > at.Index && q.matches(&row) && contains(spans, row.Index) {
			return found, false, nil
		}
		if found.Events == maxTraceEvents {
			found.Complete = false
			break
		}
		if found.Events++; found.Events == 1 {
			found.Last = row
		}
		found.First = row
		found.Decisions[row.Effective]++
		if !agents[row.Agent] {
			agents[row.Agent] = true
			found.Agents = append(found.Agents, row.Agent)
		}
	}
	return found, true, nil
}

func contains(spans []span, at id.Index) bool {
	for _, s := range spans {
		if s.begin <= at && at < s.end {
			return true
		}
	}
	return false
}

// traceRows yields the rows of a trace.
func (x *Index) traceRows(ctx context.Context, s *log.State, v *view, trace id.Trace,
	ascending bool) iter.Seq2[Row, error] {
	f := Filter{Trace: trace}
	return x.rows(ctx, s, v, f.wanted(), []span{{0, v.end}}, ascending)
}

// Tree returns a page of the events of a trace, oldest first, and the parent of each: another event of
// the trace, which its payload names as parent_event_id; "" for none. fault.NotFound without events.
func (x *Index) Tree(ctx context.Context, t id.Tenant, trace id.Trace, q Query) (page Page, parents []id.Event,
	err error) {
	q.Filter, q.Ascending, q.Text = Filter{Trace: trace}, true, ""
	err = x.inView(ctx, t, func(s *log.State, v *view) error {
		if page, err = x.listIn(ctx, s, v, &q); err == nil {
			parents, err = x.parentsOf(ctx, s, page.Rows)
		}
		return err
	})
	if err == nil && len(page.Rows) == 0 && q.After == nil {
		err = fault.New(fault.NotFound, "Not found")
	}
	return page, parents, err
}

// parentsOf returns the parents of rows of one trace.
func (x *Index) parentsOf(ctx context.Context, s *log.State, rows []Row) ([]id.Event, error) {
	parents, of := make([]id.Event, len(rows)), []int{}
	var named []id.Event
	for i := range rows {
		e, err := x.ledgers.Event(ctx, s, rows[i].Index, allParts)
		if err != nil {
			return nil, fmt.Errorf("read event: %w", err)
		}
		if name := readParent(e.Envelope); event.ValidEvent(string(name)) {
			named, of = append(named, name), append(of, i)
		}
	}
	at, err := x.ledgers.Locate(ctx, s, named)
	if err != nil {
		return nil, err
	}
	for n, i := range of {
		if at[n] == storage.NoIndex || at[n] == rows[i].Index {
			continue
		}
		parent, err := x.ledgers.Event(ctx, s, at[n], storage.FieldRecord)
		if err != nil {
			return nil, fmt.Errorf("read parent: %w", err)
		}
		if parent.Trace == rows[i].Trace {
			parents[i] = named[n]
		}
	}
	return parents, nil
}

// readParent returns the event that a payload names as its parent, "" for none.
func readParent(envelope []byte) id.Event {
	var said struct {
		Payload struct {
			Parent jsontext.Value `json:"parent_event_id"`
		} `json:"payload"`
	}
	var name id.Event
	if json.Unmarshal(envelope, &said) != nil || json.Unmarshal(said.Payload.Parent, &name) != nil {
		return ""
	}
	return name
}
