package audit

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
)

// backlog contains the ledgers with events that are not re-verified yet. Methods may be called concurrently.
type backlog struct {
	mu  sync.Mutex
	of  map[id.Tenant]lag
	sum uint64 // of the lags in events
}

// lag is the distance of a ledger's re-verified position from its head.
type lag struct {
	position, size id.Index
	since          id.Instant // when the oldest event to re-verify was received
	noticed        time.Time  // when the lag was noticed
	delayed        bool       // it could not be read, so it waits for a pause even if it is busy
}

func (b lag) eventsBehind() uint64 { return uint64(b.size - b.position) }

// busyEvents is the number of new events from which a ledger does not wait for a pause.
const busyEvents = 2048

// listDueLedgers returns the ledgers whose new events have waited for at least pause or are many. The one that has
// waited longest comes first.
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

// countEvents returns the number of waiting events of all ledgers.
func (b *backlog) countEvents() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sum
}

// findOldest returns when the oldest waiting event was received, or 0.
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

// findPosition returns the re-verified position of a ledger in the backlog.
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

// extendLag updates the size of a ledger in the backlog. It returns false if the backlog does not contain the ledger at
// that position.
func (b *backlog) extendLag(t id.Tenant, position, size id.Index) bool {
	l, ok := b.findLag(t)
	if !ok || l.position != position {
		return false
	}
	l.size = max(l.size, size)
	b.replaceLag(t, l)
	return true
}

// delayLedger makes a ledger that could not be read wait for a pause.
func (b *backlog) delayLedger(t id.Tenant, now time.Time) {
	if l, ok := b.findLag(t); ok {
		l.noticed, l.delayed = now, true
		b.replaceLag(t, l)
	}
}

// setNoticed sets when the lag of a ledger was noticed.
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
