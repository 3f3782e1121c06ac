package index

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wait"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// The bounds of the work for one page.
const (
	maxRead   = 10_000 // events that are read from the ledger
	readAhead = 64     // events that are read at once
	readers   = 4      // which read them
)

// searchTime is how long a page with a text to search for is worked on.
const searchTime = 200 * time.Millisecond

// Query asks for one page of a list.
type Query struct {
	Filter
	Text      string    // in lower case: a part of the stored texts, in either case; "" for none
	Envelopes bool      // Text is looked for in envelopes too; else in records alone
	Ascending bool      // oldest first; else newest first
	After     *id.Index // the event behind which the page begins; nil for the first page
	Limit     int       // at least 1
}

// Page is a page of a list.
type Page struct {
	Rows []Row
	// Next is the event behind which the next page begins; nil when this one reached the end. A page
	// may have fewer rows than the limit, or none, and have a next one.
	Next *id.Index
	End  id.Index // the list reaches up to the event before this one
}

// List returns a page of the events of a ledger.
func (x *Index) List(ctx context.Context, t id.Tenant, q Query) (page Page, err error) {
	if err := q.Check(); err != nil {
		return Page{}, err
	}
	err = x.inView(ctx, t, func(s *log.State, v *view) error {
		page, err = x.listIn(ctx, s, v, &q)
		return err
	})
	return page, err
}

// spansBehind cuts spans to the events behind After, in the order of the query.
func (q *Query) spansBehind(spans []span) (left []span) {
	for _, s := range spans {
		if q.After != nil && q.Ascending {
			s.begin = max(s.begin, *q.After+1)
		}
		if q.After != nil && !q.Ascending {
			s.end = min(s.end, *q.After)
		}
		if s.begin < s.end {
			left = append(left, s)
		}
	}
	return left
}

func (x *Index) listIn(ctx context.Context, s *log.State, v *view, q *Query) (Page, error) {
	spans, err := x.spansOf(ctx, s, v, &q.Filter)
	if err != nil {
		return Page{}, err
	}
	l := &lister{x: x, state: s, query: q, page: Page{Rows: make([]Row, 0, min(q.Limit, 128)), End: v.end}}
	if q.Text != "" {
		l.until = x.clock().Add(searchTime)
	}
	for c, err := range x.candidates(ctx, v, q.wanted(), q.spansBehind(spans), q.Ascending) {
		if err != nil {
			return Page{}, err
		}
		if done, err := l.take(ctx, c); done || err != nil {
			return l.page, err
		}
	}
	_, err = l.flush(ctx)
	return l.page, err
}

// lister collects the rows of a page.
type lister struct {
	x       *Index
	state   *log.State
	query   *Query
	page    Page
	waiting []candidate
	looked  int       // candidates so far
	until   time.Time // for work on the page; zero: no such bound
}

// take takes a candidate, and reports whether the page is complete.
func (l *lister) take(ctx context.Context, c candidate) (done bool, err error) {
	l.waiting = append(l.waiting, c)
	if len(l.waiting) < min(readAhead, l.query.Limit-len(l.page.Rows)+1) {
		return false, nil
	}
	return l.flush(ctx)
}

// flush looks at the candidates that wait. The page is complete when it has all rows and one more
// event is known to match, or when its work has reached its bound.
func (l *lister) flush(ctx context.Context) (done bool, err error) {
	rows, matched, err := l.readWaiting(ctx)
	if err != nil {
		return false, err
	}
	for i := range rows {
		if !matched[i] {
			continue
		}
		if len(l.page.Rows) == l.query.Limit {
			last := l.page.Rows[l.query.Limit-1].Index
			l.page.Next = &last
			return true, nil
		}
		l.page.Rows = append(l.page.Rows, rows[i])
	}
	if l.looked += len(rows); len(rows) == 0 {
		return false, nil
	}
	l.waiting = l.waiting[:0]
	if l.looked >= maxRead || !l.until.IsZero() && !l.x.clock().Before(l.until) {
		last := rows[len(rows)-1].Index
		l.page.Next = &last
		return true, nil
	}
	return false, nil
}

// readWaiting returns the rows of the candidates that wait, and whether each matches.
func (l *lister) readWaiting(ctx context.Context) ([]Row, []bool, error) {
	rows, matched := make([]Row, len(l.waiting)), make([]bool, len(l.waiting))
	var g errgroup.Group
	g.SetLimit(readers)
	for begin, end := 0, 0; begin < len(l.waiting); begin = end {
		end = l.endOfRun(begin)
		g.Go(func() error { return l.readRun(ctx, l.waiting[begin:end], rows[begin:end], matched[begin:end]) })
	}
	return rows, matched, g.Wait()
}

// maxGap is how many events may lie between two that are read together, because the events of a range
// cost less than events one by one.
const maxGap = 4

// endOfRun returns the end of the candidates from begin on that are read together.
func (l *lister) endOfRun(begin int) int {
	end := begin + 1
	for end < len(l.waiting) {
		before, next := l.waiting[end-1].at, l.waiting[end].at
		if max(before, next)-min(before, next) > maxGap+1 {
			break
		}
		end++
	}
	return end
}

// readRun reads the rows of candidates that lie near each other, and finds which match.
func (l *lister) readRun(ctx context.Context, run []candidate, rows []Row, matched []bool) error {
	first, last := run[0].at, run[len(run)-1].at
	places := make(map[id.Index]int, len(run))
	for i, c := range run {
		if c.row != nil && l.query.Text == "" {
			rows[i], matched[i] = *c.row, true
			continue
		}
		places[c.at] = i
	}
	if len(places) == 0 {
		return nil
	}
	for e, err := range l.x.ledgers.Events(ctx, l.state, min(first, last), max(first, last)+1, allParts) {
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		i, waits := places[e.Index]
		if !waits {
			continue
		}
		if rows[i], err = newRow(&e); err != nil {
			return err
		}
		matched[i] = l.query.matches(&rows[i]) && l.query.finds(&e)
	}
	return nil
}

// finds reports whether the text of a query is a part of the stored texts of an event.
func (q *Query) finds(e *storage.Event) bool {
	return q.Text == "" || strings.Contains(strings.ToLower(string(e.Record)), q.Text) ||
		q.Envelopes && strings.Contains(strings.ToLower(string(e.Envelope)), q.Text)
}

// rowOf returns the row of a candidate.
func (x *Index) rowOf(ctx context.Context, s *log.State, c candidate) (Row, error) {
	if c.row != nil {
		return *c.row, nil
	}
	e, err := x.ledgers.Event(ctx, s, c.at, allParts)
	if err != nil {
		return Row{}, fmt.Errorf("read event: %w", err)
	}
	return newRow(&e)
}

// tailPause is how often a caller that waits looks for new events.
const tailPause = 200 * time.Millisecond

// Await returns when a ledger has more than size events, or after a while.
func (x *Index) Await(ctx context.Context, t id.Tenant, size id.Index, longest time.Duration) error {
	for left := longest; left > 0; left -= tailPause {
		s, err := x.ledgers.State(ctx, t)
		if err != nil || s.Size() > size {
			return err
		}
		if err := wait.For(ctx, min(left, tailPause)); err != nil {
			return err
		}
	}
	return nil
}
