package index

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
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
	searched  = 1024   // events per read of a text search
)

// maxActRecords bounds the records of acts that are compared for one page.
const maxActRecords = 256

// searchTime bounds the time for a page of a text search, unless the query has a longer time.
const searchTime = 200 * time.Millisecond

// Query requests one page of a list.
type Query struct {
	Filter
	Text      string    // part of the stored texts, in lower case, found in any case; "" if none
	Envelopes bool      // search Text in envelopes too; otherwise only in records
	Ascending bool      // oldest first; otherwise latest first
	After     *id.Index // the event after which the page starts; nil for the first page
	Limit     int       // at least 1

	// Longest is the time for a page of a text search; if 0, searchTime.
	Longest time.Duration
	// TakeTurn waits for a processor for one read of a text search, of some milliseconds; if nil, the search does not wait.
	TakeTurn func(ctx context.Context) (give func(), err error)
}

// Page is a page of a list.
type Page struct {
	Rows []Row
	// Next is the event after which the next page starts, or nil if this is the last page. A page may have fewer rows
	// than the limit, or none, and still not be the last.
	Next *id.Index
	End  id.Index // the list contains the events before this index

	// Of a text search: the number of events in which it looked for the text, and the event up to which it looked. The
	// event is set if Looked > 0 or Next is set.
	Looked     int
	LookedTo   id.Index
	LookedToAt id.Instant
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
	if err := v.checkConditions(q.Columns); err != nil {
		return Page{}, err
	}
	spans, err := x.spansOf(ctx, s, v, &q.Filter)
	if err != nil {
		return Page{}, err
	}
	l := &lister{x: x, state: s, query: q, page: Page{Rows: make([]Row, 0, min(q.Limit, 128)), End: v.end}}
	if q.Text != "" {
		l.until, l.find = x.clock().Add(cmp.Or(q.Longest, searchTime)), newFinder(q.Text)
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
	find    *finder // of a text search; otherwise nil
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
	width := min(readAhead, l.query.Limit-len(l.page.Rows)+1)
	if l.find != nil {
		width = min(searched, readAhead+l.looked) // most events do not match
	}
	if len(l.waiting) < width {
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
	if l.find == nil {
		return true, nil
	}
	l.page.LookedTo = at
	err = l.x.readEvents(ctx, l.state, []candidate{{at: at}}, func(_ int, e *storage.Event) error {
		l.page.LookedToAt = e.ReceivedAt
		return nil
	})
	return true, err
}

// flush checks the candidates that wait. The page is complete if it has all rows and one more event is known to match,
// or if its work has reached its bound.
func (l *lister) flush(ctx context.Context) (done bool, err error) {
	if l.find != nil {
		return l.search(ctx)
	}
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
	if l.looked >= maxRead {
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
		if c.row != nil {
			rows[i], matched[i] = *c.row, true
			rows[i].Act = c.act
			continue
		}
		unread = append(unread, candidate{at: c.at, place: i})
	}
	err := l.x.readEvents(ctx, l.state, unread, func(place int, e *storage.Event) (err error) {
		if rows[place], err = newRow(e); err == nil {
			rows[place].Act = l.waiting[place].act
			matched[place] = l.query.admits(&rows[place])
		}
		return err
	})
	return rows, matched, err
}

// admits reports whether a row that was read from the ledger matches. The index may still have values of an erased event.
func (q *Query) admits(r *Row) bool { return q.matches(r) && (len(q.Columns) == 0 || r.ErasedBy == 0) }

// search looks for the text in the candidates that wait. The page is complete if it has all rows, or if its time has passed.
func (l *lister) search(ctx context.Context) (done bool, err error) {
	if len(l.waiting) == 0 {
		return false, nil
	}
	if l.query.TakeTurn != nil {
		give, err := l.query.TakeTurn(ctx)
		if err != nil {
			return false, err
		}
		defer give()
	}
	of := make([]candidate, len(l.waiting))
	for i := range of {
		of[i] = candidate{at: l.waiting[i].at, place: i}
	}
	times, rows := make([]id.Instant, len(of)), make(map[int]Row)
	err = l.x.readEvents(ctx, l.state, of, func(place int, e *storage.Event) error {
		times[place] = e.ReceivedAt
		if !l.find.in(e.Record) && (!l.query.Envelopes || !l.find.in(e.Envelope)) {
			return nil
		}
		row, err := newRow(e)
		if row.Act = l.waiting[place].act; err == nil && l.query.admits(&row) {
			rows[place] = row
		}
		return err
	})
	if err != nil {
		return false, err
	}
	last := len(of) - 1
	for _, place := range slices.Sorted(maps.Keys(rows)) {
		l.page.Rows = append(l.page.Rows, rows[place])
		if len(l.page.Rows) == l.query.Limit {
			last, done = place, true
			break
		}
	}
	l.looked += last + 1
	l.page.Looked, l.page.LookedTo, l.page.LookedToAt = l.looked, l.waiting[last].at, times[last]
	if done = done || !l.x.clock().Before(l.until); done {
		l.page.Next = &l.page.LookedTo
	}
	l.waiting = l.waiting[:0]
	return done, nil
}

// readEvents calls visit with the event of each candidate and its place. visit must not retain the event's texts. Adjacent events are read as a range, because
// that costs less.
func (x *Index) readEvents(ctx context.Context, s *log.State, of []candidate,
	visit func(place int, e *storage.Event) error) error {
	if len(of) == 0 {
		return nil
	}
	slices.SortFunc(of, func(a, b candidate) int { return cmp.Compare(a.at, b.at) })
	if first, last := of[0].at, of[len(of)-1].at; last-first < 2*id.Index(len(of)) {
		for e, err := range x.ledgers.Events(ctx, s, first, last+1, allParts|storage.FieldLent) {
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
	for part := range slices.Chunk(of, readAhead) { // all events of a read are in memory
		at := make([]id.Index, len(part))
		for i := range part {
			at[i] = part[i].at
		}
		found, err := x.store.EventsAt(ctx, s.Identity().Tenant, at, allParts)
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		for i := range found {
			if err := visit(part[i].place, &found[i]); err != nil {
				return err
			}
		}
		if err := checkRead(len(part) - len(found)); err != nil {
			return err
		}
	}
	return nil
}

// checkRead returns an error if a ledger has lost events that a state contains.
func checkRead(missing int) error {
	if missing > 0 {
		return fmt.Errorf("read events: %w: %d events are missing", storage.ErrCorrupt, missing)
	}
	return nil
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
