package index

import (
	"cmp"
	"context"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Trace is a summary of the events of one trace.
type Trace struct {
	ID          id.Trace
	At          id.Index // of the latest matching event, which determines the order of the list
	First, Last Row
	Events      int
	Decisions   map[id.Decision]int // effective
	Agents      []id.Agent          // of the latest maxTraceEvents events, latest first
	// Complete reports whether Agents contains all agents. Events and Decisions count all events in either case. Those
	// of a longer trace are counted by its postings, which may contain an event of another trace by chance, one in
	// 2^42.
	Complete bool
	AtLeast  bool // Events and Decisions are lower bounds, because the page has counted maxCounted postings
}

const (
	maxTraceEvents = 1000    // events of a trace that are read
	maxCounted     = 200_000 // postings that are counted for a page
)

// TracePage is a page of a list of traces.
type TracePage struct {
	Traces []Trace
	Next   *id.Index // the latest matching event of the last trace; nil if this is the last page
	End    id.Index
}

// Traces returns a page of traces with matching events, latest first. The position of a trace is its latest matching
// event.
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
	l := &traceLister{x: x, state: s, view: v, query: q, spans: spans, page: TracePage{End: v.end},
		seen: make(map[id.Trace]bool), counts: x.maxCounted}
	for row, err := range x.rows(ctx, s, v, q.wanted(), q.spansAfter(spans), false) {
		if err != nil {
			return TracePage{}, err
		}
		done, err := l.take(ctx, &row)
		if err != nil || done {
			return l.page, err
		}
		at := row.Index
		if l.page.Next = &at; l.looked >= maxRead {
			return l.page, nil
		}
	}
	l.page.Next = nil
	return l.page, nil
}

// traceLister collects the traces of a page.
type traceLister struct {
	x      *Index
	state  *log.State
	view   *view
	query  *Query
	spans  []span
	page   TracePage
	seen   map[id.Trace]bool
	looked int // events that were read
	counts int // postings that may still be counted
}

// take adds the next matching row, and reports whether the page is complete.
func (l *traceLister) take(ctx context.Context, row *Row) (done bool, err error) {
	if l.looked++; l.seen[row.Trace] {
		return false, nil
	}
	l.seen[row.Trace] = true
	if newer, err := l.wantsNewer(ctx, row); newer || err != nil {
		return false, err
	}
	if len(l.page.Traces) == l.query.Limit {
		return true, nil
	}
	found, err := l.countTrace(ctx, row.Trace)
	found.At = row.Index
	l.page.Traces = append(l.page.Traces, found)
	return false, err
}

// wantsNewer reports whether a later event of a row's trace matches. In that case, the trace is on a previous page.
func (l *traceLister) wantsNewer(ctx context.Context, row *Row) (bool, error) {
	if l.query.After == nil {
		return false, nil
	}
	w := l.query.wanted()
	w.terms = append([]term{newTerm(byTrace, string(row.Trace))}, w.terms...)
	w.matches = func(r *Row) bool { return r.Trace == row.Trace && l.query.matches(r) }
	var newer []span
	for _, s := range l.spans {
		if s = s.clip(span{*l.query.After, l.view.end}); s.begin < s.end {
			newer = append(newer, s)
		}
	}
	for _, err := range l.x.rows(ctx, l.state, l.view, w, newer, false) {
		l.looked++
		return err == nil, err
	}
	return false, nil
}

// countTrace counts the events of a trace.
func (l *traceLister) countTrace(ctx context.Context, trace id.Trace) (found Trace, err error) {
	found = Trace{ID: trace, Complete: true, Decisions: make(map[id.Decision]int)}
	f := Filter{Trace: trace, ByCaller: true}
	for row, err := range l.x.rows(ctx, l.state, l.view, f.wanted(), []span{{0, l.view.end}}, false) {
		if err != nil {
			return found, err
		}
		if found.Events == maxTraceEvents {
			found.Complete = false
			break
		}
		l.looked++
		if found.Events++; found.Events == 1 {
			found.Last = row
		}
		found.First = row
		found.Decisions[row.Effective]++
		if !slices.Contains(found.Agents, row.Agent) {
			found.Agents = append(found.Agents, row.Agent)
		}
	}
	if !found.Complete {
		err = l.countLong(ctx, &found)
	}
	return found, err
}

// countLong counts a trace by its postings, as far as the bound of the page allows, and finds its first event.
func (l *traceLister) countLong(ctx context.Context, found *Trace) error {
	f := Filter{Trace: found.ID, ByCaller: true}
	first := l.view.end
	for row, err := range l.x.rows(ctx, l.state, l.view, f.wanted(), []span{{0, l.view.end}}, true) {
		if err != nil {
			return err
		}
		found.First, first = row, row.Index
		break
	}
	found.Events = 0
	for _, decision := range []id.Decision{id.Allow, id.Deny, id.AllowWithObligation} {
		f.Effective = decision
		n := 0
		w := f.wanted()
		for _, err := range l.x.candidates(ctx, l.view, w, []span{{first, found.Last.Index + 1}}, true) {
			if err != nil {
				return err
			}
			if found.AtLeast = l.counts == 0; found.AtLeast {
				break
			}
			l.counts--
			n++
		}
		if delete(found.Decisions, decision); n > 0 {
			found.Decisions[decision] = n
		}
		found.Events += n
	}
	return nil
}

// Tree returns a page of the events of a trace and of those that were made under it (Filter.ByCaller), oldest first, and the parent of each: another event of the trace, which
// its payload contains as parent_event_id, or "". It returns fault.NotFound if the trace has no events.
func (x *Index) Tree(ctx context.Context, t id.Tenant, trace id.Trace, q Query) (page Page, parents []id.Event,
	err error) {
	q.Filter, q.Ascending, q.Text = Filter{Trace: trace, ByCaller: true}, true, ""
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
	events := make([]candidate, len(rows))
	for i := range rows {
		events[i] = candidate{at: rows[i].Index, place: i}
	}
	err := x.readInParts(ctx, s, events, func(i int, e *storage.Event) error {
		if name := readParent(e.Envelope); event.ValidEvent(string(name)) {
			named, of = append(named, name), append(of, i)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	at, err := x.ledgers.Locate(ctx, s, named)
	if err != nil {
		return nil, err
	}
	events = events[:0]
	for n, i := range of {
		if at[n] != storage.NoIndex && at[n] != rows[i].Index {
			events = append(events, candidate{at: at[n], place: n})
		}
	}
	err = x.readInParts(ctx, s, events, func(n int, e *storage.Event) error {
		if i := of[n]; e.Trace == rows[i].Trace {
			parents[i] = named[n]
		}
		return nil
	})
	return parents, err
}

// readInParts is readEvents for any number of events. Several candidates may refer to one event.
func (x *Index) readInParts(ctx context.Context, s *log.State, of []candidate,
	visit func(place int, e *storage.Event) error) error {
	slices.SortFunc(of, func(a, b candidate) int { return cmp.Compare(a.at, b.at) })
	for part := range slices.Chunk(of, readAhead) {
		shared := make(map[id.Index][]int)
		for _, c := range part {
			shared[c.at] = append(shared[c.at], c.place)
		}
		err := x.readEvents(ctx, s, slices.CompactFunc(part, func(a, b candidate) bool { return a.at == b.at }),
			func(_ int, e *storage.Event) error {
				for _, place := range shared[e.Index] {
					if err := visit(place, e); err != nil {
						return err
					}
				}
				return nil
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// readParent returns the event that a payload contains as its parent, or "".
func readParent(envelope []byte) id.Event {
	var read struct {
		Payload struct {
			Parent jsontext.Value `json:"parent_event_id"`
		} `json:"payload"`
	}
	var name id.Event
	if json.Unmarshal(envelope, &read) != nil || json.Unmarshal(read.Payload.Parent, &name) != nil {
		return ""
	}
	return name
}
