package log

import (
	"fmt"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/clock"
)

// A ledger whose newest event was received later than now would give its next events
// that time, until it has come. Its counters of months and limits would stand still
// with it. So a ledger that is early by more than earlyBound takes no events.

// earlyBound is how far the newest received_at may lie ahead of the clock. Within it
// the next event is given the same time, because a clock may be corrected by as much.
const earlyBound = clock.Bound

// aheadLedgers is the set of ledgers that are known to be ahead of the clock.
type aheadLedgers struct {
	mu      sync.Mutex
	tenants map[id.Tenant]struct{} // nil until the first
}

// noteAhead reports whether the ledger was not known yet.
func (e *aheadLedgers) noteAhead(t id.Tenant) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, known := e.tenants[t]; known {
		return false
	}
	if e.tenants == nil {
		e.tenants = make(map[id.Tenant]struct{})
	}
	e.tenants[t] = struct{}{}
	return true
}

func (e *aheadLedgers) forgetAhead(t id.Tenant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.tenants, t)
}

func (e *aheadLedgers) countAhead() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.tenants)
}

// clockInstant is the clock's time.
func (l *Ledgers) clockInstant() id.Instant { return id.InstantOf(l.clock()) }

// Timely returns why nothing can be decided by the time for the ledger of s: the clock is held, or the ledger is
// ahead of the clock. Either is fault.Unavailable with code clock. Timely returns nil for a ledger that takes events.
func (l *Ledgers) Timely(s *State) error {
	if err := l.held(); err != nil {
		return err
	}
	return checkAhead(s.head.LastReceived, l.clockInstant())
}

func checkAhead(newest, now id.Instant) error {
	if newest <= now+id.Instant(earlyBound.Milliseconds()) {
		return nil
	}
	return clock.Refusal(fmt.Sprintf("the newest event was received at %s, which has not come", newest))
}

// noteIfAhead is checkAhead for the end of a ledger. It counts the ledgers that are ahead, and logs each once.
func (l *Ledgers) noteIfAhead(identity *Identity, newest, now id.Instant) error {
	if l.importing { // arriving events have their times already
		return nil
	}
	err := checkAhead(newest, now)
	switch {
	case err == nil:
		l.ahead.forgetAhead(identity.Tenant)
	case l.ahead.noteAhead(identity.Tenant):
		l.logger.Error("ledger takes no events: its newest one was received at a time that has not come; correct-clock lets it go on",
			"origin", identity.Origin, "received_at", newest, "ahead", time.Duration(newest-now)*time.Millisecond)
	}
	return err
}
