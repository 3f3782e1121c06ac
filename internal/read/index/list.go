package index

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// The bounds of the work for one page.
const (
	maxRead   = 10_000 // events that are read from the ledger
	readAhead = 128    // events per read
)

// maxActRecords bounds the records of acts that are compared for one page.
const maxActRecords = 256

// searchTime bounds the time for a page of a text search.
const searchTime = 200 * time.Millisecond

// Query requests one page of a list.
type Query struct {
	Filter
	Text      string    // part of the stored texts, in lower case, found in any case; "" if none
	Envelopes bool      // search Text in envelopes too; otherwise only in records
	Ascending bool      // oldest first; otherwise latest first
	After     *id.Index // the event after which the page starts; nil for the first page
	Limit     int       // at least 1
}

// Page is a page of a list.
type Page struct {
	Rows []Row
	// Next is the event after which the next page starts, or nil if this is the last page. A page may have fewer rows
	// than the limit, or none, and still not be the last.
	Next *id.Index
	End  id.Index // the list contains the events before this index
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

// spansAfter restricts spans to the events after After, in the order of the query.
func (q *Query) spansAfter(spans []span) (left []span) {
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
	for c, err := range x.candidates(ctx, v, q.wanted(), q.spansAfter(spans), q.Ascending) {
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
	records int       // of acts so far
	until   time.Time // time limit of the page; zero if none
}

// take adds a candidate, and reports whether the page is complete.
func (l *lister) take(ctx context.Context, c candidate) (done bool, err error) {
	if c.passed {
		return l.passRecord(ctx, c.at)
	}
	l.waiting = append(l.waiting, c)
	if len(l.waiting) < min(readAhead, l.query.Limit-len(l.page.Rows)+1) {
		return false, nil
	}
	return l.flush(ctx)
}

// passRecord counts a record of acts, which ends at an index, and completes the page if it was the last one.
func (l *lister) passRecord(ctx context.Context, at id.Index) (done bool, err error) {
	if l.records++; l.records < l.x.maxActRecords {
		return false, nil
	}
	if done, err = l.flush(ctx); done || err != nil {
		return done, err
	}
	l.page.Next = &at
	return true, nil
}

// flush checks the candidates that wait. The page is complete if it has all rows and one more event is known to match,
// or if its work has reached its bound.
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
	var unread []candidate
	for i, c := range l.waiting {
		if c.row != nil && l.query.Text == "" {
			rows[i], matched[i] = *c.row, true
			rows[i].Act = c.act
			continue
		}
		unread = append(unread, candidate{at: c.at, place: i})
	}
	err := l.x.readEvents(ctx, l.state, unread, func(place int, e *storage.Event) (err error) {
		if rows[place], err = newRow(e); err == nil {
			rows[place].Act = l.waiting[place].act
			matched[place] = l.query.matches(&rows[place]) && l.query.finds(e)
		}
		return err
	})
	return rows, matched, err
}

// readEvents calls visit with the event of each candidate and its place. Adjacent events are read as a range, because
// that costs less.
func (x *Index) readEvents(ctx context.Context, s *log.State, of []candidate,
	visit func(place int, e *storage.Event) error) error {
	if len(of) == 0 {
		return nil
	}
	slices.SortFunc(of, func(a, b candidate) int { return cmp.Compare(a.at, b.at) })
	if first, last := of[0].at, of[len(of)-1].at; last-first < 2*id.Index(len(of)) {
		for e, err := range x.ledgers.Events(ctx, s, first, last+1, allParts) {
			if err != nil {
				return fmt.Errorf("read events: %w", err)
			}
			if of[0].at != e.Index {
				continue
			}
			if err := visit(of[0].place, &e); err != nil {
				return err
			}
			of = of[1:]
		}
		return checkRead(len(of))
	}
	at := make([]id.Index, len(of))
	for i := range of {
		at[i] = of[i].at
	}
	found, err := x.store.EventsAt(ctx, s.Identity().Tenant, at, allParts)
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	for i := range found {
		if err := visit(of[i].place, &found[i]); err != nil {
			return err
		}
	}
	return checkRead(len(of) - len(found))
}

// checkRead returns an error if a ledger has lost events that a state contains.
func checkRead(missing int) error {
	if missing > 0 {
		return fmt.Errorf("read events: %w: %d events are missing", storage.ErrCorrupt, missing)
	}
	return nil
}

// finds reports whether the stored texts of an event contain the text of a query.
func (q *Query) finds(e *storage.Event) bool {
	return q.Text == "" || strings.Contains(strings.ToLower(string(e.Record)), q.Text) ||
		q.Envelopes && strings.Contains(strings.ToLower(string(e.Envelope)), q.Text)
}

// tailPause is the pause between two checks for new events by a waiting caller.
const tailPause = 200 * time.Millisecond

// Await returns when a ledger has more than size events, but not before tailPause, or after a timeout.
func (x *Index) Await(ctx context.Context, t id.Tenant, size id.Index, longest time.Duration) error {
	for left := longest; left > 0; left -= tailPause {
		if err := syncs.Sleep(ctx, min(left, tailPause)); err != nil {
			return err
		}
		if s, err := x.ledgers.State(ctx, t); err != nil || s.Size() > size {
			return err
		}
	}
	return nil
}
