package admission

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Turns lets a number of workers work at a time. Parties that wait come in turns,
// each with what of its work has waited longest, and in company one turn is kept
// free of any one party, so that who comes next need not wait for work to end. A
// party alone never waits: there is nobody to be fair to. Work that stands still, as it
// does while a store does not answer, keeps nobody from its turn. Its methods may be
// called concurrently.
type Turns struct {
	company *Company
	workers int

	mu    sync.Mutex
	free  int // turns; below 0 while more work is done, begun by a party alone
	held  map[Party]int
	still map[Party]int // turns that stood still, and count no more
	ring  []*lane       // parties that wait, the next one first
	by    map[Party]*lane
	looks *time.Timer    // for standstill, while somebody waits; nil while nobody does
	moved map[Party]bool // who gave a turn back since the last look, while somebody waits
}

// lane is the waiting work of one party, oldest first, never empty.
type lane struct {
	party   Party
	waiting []chan struct{} // closed when it is the worker's turn
}

// NewTurns returns turns for n workers at a time of who is in company c.
func NewTurns(c *Company, n int) *Turns {
	return &Turns{company: c, workers: n, free: n, held: make(map[Party]int), still: make(map[Party]int), by: make(map[Party]*lane), moved: make(map[Party]bool)}
}

// Workers returns how many work at a time.
func (t *Turns) Workers() int { return t.workers }

// Take waits until work of a party may begin, or ctx ends; then it returns the
// error of ctx. After nil the caller calls Give when the work is done.
func (t *Turns) Take(ctx context.Context, p Party) error {
	t.company.Came(p)
	return t.TakeQuietly(ctx, p)
}

// TakeQuietly is Take for work that need not be of a request: the service's own in
// the background is no company to anybody.
func (t *Turns) TakeQuietly(ctx context.Context, p Party) error {
	t.mu.Lock()
	if t.by[p] == nil && t.room(p) {
		t.grant(p)
		t.mu.Unlock()
		return nil
	}
	mine := make(chan struct{})
	t.line(p, mine)
	t.watch()
	t.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
		t.withdraw(p, mine)
		return ctx.Err()
	}
}

// room reports whether one more worker of a party may work. Who has none at work
// does not wait for the many that were begun by a party alone.
func (t *Turns) room(p Party) bool {
	held := t.held[p]
	return t.company.Alone() || t.free > 0 && held < max(1, t.workers-1) || t.free < 0 && held == 0
}

func (t *Turns) grant(p Party) {
	t.free--
	t.held[p]++
}

// Give ends a turn.
func (t *Turns) Give(p Party) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.give(p)
}

func (t *Turns) give(p Party) {
	if t.looks != nil {
		t.moved[p] = true
	}
	if t.held[p] == 0 { // the turn had stood still
		if t.still[p]--; t.still[p] == 0 {
			delete(t.still, p)
		}
		return
	}
	t.free++
	if t.held[p]--; t.held[p] == 0 {
		delete(t.held, p)
	}
	t.next()
}

// next lets those work for whom there is room now.
func (t *Turns) next() {
	for i := 0; i < len(t.ring); {
		l := t.ring[i]
		if !t.room(l.party) {
			i++
			continue
		}
		t.ring = slices.Delete(t.ring, i, i+1)
		t.grant(l.party)
		close(l.waiting[0])
		if l.waiting = l.waiting[1:]; len(l.waiting) > 0 {
			t.ring = append(t.ring, l)
		} else {
			delete(t.by, l.party)
		}
	}
}

// line puts a worker behind the others of its party.
func (t *Turns) line(p Party, mine chan struct{}) {
	l := t.by[p]
	if l == nil {
		l = &lane{party: p}
		t.by[p] = l
		t.ring = append(t.ring, l)
	}
	l.waiting = append(l.waiting, mine)
}

// withdraw takes a worker out of the line, or its turn away.
func (t *Turns) withdraw(p Party, mine chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.by[p]
	at := -1
	if l != nil {
		at = slices.Index(l.waiting, mine)
	}
	if at < 0 {
		t.give(p)
		return
	}
	if l.waiting = slices.Delete(l.waiting, at, at+1); len(l.waiting) == 0 {
		delete(t.by, p)
		t.ring = slices.DeleteFunc(t.ring, func(other *lane) bool { return other == l })
	}
}
