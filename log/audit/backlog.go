package audit

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
	of  map[id.Tenant]lag
	sum uint64 // of the events
}

// lag is how far a ledger's re-verification lies behind its head.
type lag struct {
	position, size id.Index
	since          id.Instant // when the oldest event that is not re-verified was received
	noticed        time.Time  // when it was first seen that there is one
	delayed        bool       // it could not be read: it waits for a pause, however many there are
}

func (b lag) eventsBehind() uint64 { return uint64(b.size - b.position) }

// busyEvents is how many events of a ledger wait for no pause.
const busyEvents = 2048

// listDueLedgers returns the ledgers whose turn it is, those first that wait for longest: those in
// which there is something new for at least a pause, or much.
func (b *backlog) listDueLedgers(now time.Time, pause time.Duration) []id.Tenant {
	b.mu.Lock()
	defer b.mu.Unlock()
	var due []id.Tenant
	for t, l := range b.of {
		if l.eventsBehind() >= busyEvents && !l.delayed || now.Sub(l.noticed) >= pause {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(s, t id.Tenant) int {
		return cmp.Or(b.of[s].noticed.Compare(b.of[t].noticed), cmp.Compare(s, t))
	})
	return due
}

// countEvents is how many events wait, of all ledgers together.
func (b *backlog) countEvents() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sum
}

// findOldest returns when the oldest event that waits was received; 0 when none does.
func (b *backlog) findOldest() (since id.Instant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range maps.Values(b.of) {
		if since == 0 || l.since < since {
			since = l.since
		}
	}
	return since
}

func (b *backlog) findLag(t id.Tenant) (lag, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, ok := b.of[t]
	return l, ok
}

// findPosition returns up to where a ledger that lies lag is re-verified.
func (b *backlog) findPosition(t id.Tenant) (id.Index, bool) {
	l, ok := b.findLag(t)
	return l.position, ok
}

func (b *backlog) replaceLag(t id.Tenant, l lag) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = make(map[id.Tenant]lag)
	}
	b.sum += l.eventsBehind() - b.of[t].eventsBehind()
	b.of[t] = l
}

// extendLag notes the size of a ledger that is known to lie behind at that position; false
// when it is not.
func (b *backlog) extendLag(t id.Tenant, position, size id.Index) bool {
	l, ok := b.findLag(t)
	if !ok || l.position != position {
		return false
	}
	l.size = max(l.size, size)
	b.replaceLag(t, l)
	return true
}

// delayLedger lets a ledger that could not be read wait.
func (b *backlog) delayLedger(t id.Tenant, now time.Time) {
	if l, ok := b.findLag(t); ok {
		l.noticed, l.delayed = now, true
		b.replaceLag(t, l)
	}
}

// setNoticed changes when it was noticed that a ledger lies behind.
func (b *backlog) setNoticed(t id.Tenant, at time.Time) {
	if l, ok := b.findLag(t); ok && !at.IsZero() {
		l.noticed = at
		b.replaceLag(t, l)
	}
}

func (b *backlog) removeLedger(t id.Tenant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sum -= b.of[t].eventsBehind()
	delete(b.of, t)
}
