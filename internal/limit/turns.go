package limit

import (
	"context"
	"slices"
	"sync"

	"github.com/agentledger/agentledger/id"
)

// Turns lets a number of workers work at a time. Organizations that wait come in
// turns, each with what of its work has waited longest. An organization alone never
// waits: there is nobody to be fair to. Its methods may be called concurrently.
type Turns struct {
	mu      sync.Mutex
	company company
	free    int     // turns; below 0 while more work is done, begun by an organization alone
	ring    []*lane // organizations that wait, the next one first
	by      map[id.Tenant]*lane
}

// lane is the waiting work of one organization, oldest first, never empty.
type lane struct {
	tenant  id.Tenant
	waiting []chan struct{} // closed when it is the worker's turn
}

// NewTurns returns turns for n workers at a time.
func NewTurns(n int) *Turns { return &Turns{free: n, by: make(map[id.Tenant]*lane)} }

// Take waits until work of an organization may begin, or ctx ends; then it returns
// the error of ctx. After nil the caller calls Give when the work is done.
func (t *Turns) Take(ctx context.Context, tenant id.Tenant) error {
	t.mu.Lock()
	t.company.came(tenant)
	if t.free > 0 || len(t.ring) == 0 && t.company.alone() {
		t.free--
		t.mu.Unlock()
		return nil
	}
	mine := make(chan struct{})
	t.line(tenant, mine)
	t.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
		if !t.withdraw(tenant, mine) {
			t.Give()
		}
		return ctx.Err()
	}
}

// Give ends a turn.
func (t *Turns) Give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free++
	if len(t.ring) == 0 || t.free <= 0 {
		return
	}
	t.free--
	l := t.ring[0]
	t.ring = t.ring[1:]
	close(l.waiting[0])
	if l.waiting = l.waiting[1:]; len(l.waiting) > 0 {
		t.ring = append(t.ring, l)
	} else {
		delete(t.by, l.tenant)
	}
}

// line puts a worker behind the others of its organization.
func (t *Turns) line(tenant id.Tenant, mine chan struct{}) {
	l := t.by[tenant]
	if l == nil {
		l = &lane{tenant: tenant}
		t.by[tenant] = l
		t.ring = append(t.ring, l)
	}
	l.waiting = append(l.waiting, mine)
}

// withdraw takes a worker out of the line; it reports false when it is its turn
// already.
func (t *Turns) withdraw(tenant id.Tenant, mine chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.by[tenant]
	if l == nil {
		return false
	}
	at := slices.Index(l.waiting, mine)
	if at < 0 {
		return false
	}
	if l.waiting = slices.Delete(l.waiting, at, at+1); len(l.waiting) == 0 {
		delete(t.by, tenant)
		t.ring = slices.DeleteFunc(t.ring, func(other *lane) bool { return other == l })
	}
	return true
}
