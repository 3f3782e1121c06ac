package log

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
)

// backlog is which ledgers have events that are not re-verified yet. Others are not in
// it. Its methods may be called concurrently.
type backlog struct {
	mu  sync.Mutex
	of  map[id.Tenant]behind
	sum uint64 // of the events
}

// behind is how far a ledger's re-verification lies behind its head.
type behind struct {
	position, size id.Index
	since          id.Instant // when the oldest event that is not re-verified was received
	noticed        time.Time  // when it was first seen that there is one
	held           bool       // it could not be read: it waits for a pause, however many there are
}

func (b behind) events() uint64 { return uint64(b.size - b.position) }

// busyEvents is how many events of a ledger wait for no pause.
const busyEvents = 2048

// due returns the ledgers whose turn it is, those first that wait for longest: those in
// which there is something new for at least a pause, or much.
func (b *backlog) due(now time.Time, pause time.Duration) []id.Tenant {
	b.mu.Lock()
	defer b.mu.Unlock()
	var due []id.Tenant
	for t, l := range b.of {
		if l.events() >= busyEvents && !l.held || now.Sub(l.noticed) >= pause {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(s, t id.Tenant) int {
		return cmp.Or(b.of[s].noticed.Compare(b.of[t].noticed), cmp.Compare(s, t))
	})
	return due
}

// events is how many events wait, of all ledgers together.
func (b *backlog) events() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sum
}

// oldest returns when the oldest event that waits was received; 0 when none does.
func (b *backlog) oldest() (since id.Instant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range maps.Values(b.of) {
		if since == 0 || l.since < since {
			since = l.since
		}
	}
	return since
}

func (b *backlog) get(t id.Tenant) (behind, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, ok := b.of[t]
	return l, ok
}

// position returns up to where a ledger that lies behind is re-verified.
func (b *backlog) position(t id.Tenant) (id.Index, bool) {
	l, ok := b.get(t)
	return l.position, ok
}

func (b *backlog) put(t id.Tenant, l behind) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = make(map[id.Tenant]behind)
	}
	b.sum += l.events() - b.of[t].events()
	b.of[t] = l
}

// grow notes the size of a ledger that is known to lie behind at that position; false
// when it is not.
func (b *backlog) grow(t id.Tenant, position, size id.Index) bool {
	l, ok := b.get(t)
	if !ok || l.position != position {
		return false
	}
	l.size = max(l.size, size)
	b.put(t, l)
	return true
}

// hold lets a ledger that could not be read wait.
func (b *backlog) hold(t id.Tenant, now time.Time) {
	if l, ok := b.get(t); ok {
		l.noticed, l.held = now, true
		b.put(t, l)
	}
}

// noticed changes when it was noticed that a ledger lies behind.
func (b *backlog) noticed(t id.Tenant, at time.Time) {
	if l, ok := b.get(t); ok && !at.IsZero() {
		l.noticed = at
		b.put(t, l)
	}
}

func (b *backlog) drop(t id.Tenant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sum -= b.of[t].events()
	delete(b.of, t)
}
