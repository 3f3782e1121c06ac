package log

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
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

// A ledger that took events while a clock was ahead is early: it takes no events until
// that time has come. The way on is one event of the server's own that says so. It is
// the only one that may be received earlier than the event before it.

// ClockKind is the action_kind of that event.
const ClockKind = "ledger_clock"

// ClockChange makes the event of its submission received at At, which is earlier than the newest event of the ledger.
// The month's counter goes back to the month of At, months after it begin with 0, and amounts that limits have
// counted after At count as added at At.
//
// Example: a clock showed January 2028 for 3 s in November 2026, and 20 events came
// in. They stay as they are. The month goes on with the count of November 2026, and January 2028 will begin with 0.
type ClockChange struct {
	Before id.Instant // received_at of the newest event
	At     id.Instant // received_at of the event that brings the change

	size   id.Index          // for which the counters below are
	used   usage             // in the month of At
	later  []storage.Counter // of months after that, 0
	limits []storage.Change
}

// Payload returns the payload of the event; everybody may read reason.
func (c *ClockChange) Payload(reason string) map[string]any {
	return map[string]any{"newest_received_at": c.Before.String(), "received_at": c.At.String(), "reason": reason}
}

// CorrectClock returns the change by which an early ledger goes on at the time of the clock. It belongs into a
// submission whose only event states it (ClockKind, Payload). fault.Conflict when the ledger is not early.
func (l *Ledgers) CorrectClock(ctx context.Context, s *State) (*ClockChange, error) {
	now := l.clockInstant()
	if checkAhead(s.head.LastReceived, now) == nil {
		return nil, fault.New(fault.Conflict, "The ledger is not ahead of the clock")
	}
	c := &ClockChange{Before: s.head.LastReceived, At: now, size: s.Size()}
	var err error
	if c.used, err = l.readMonthCount(ctx, s.identity.Tenant, MonthOf(now)); err != nil {
		return nil, storeError("correct clock", err)
	}
	if c.later, err = l.clearLater(ctx, s.identity.Tenant, MonthOf(now), MonthOf(c.Before)); err != nil {
		return nil, storeError("correct clock", err)
	}
	if c.limits, err = l.pullLimits(ctx, s.identity.Tenant, now); err != nil {
		return nil, storeError("correct clock", err)
	}
	return c, nil
}

// readMonthCount returns the stored usage of a month.
func (l *Ledgers) readMonthCount(ctx context.Context, t id.Tenant, m Month) (usage, error) {
	values, err := l.store.Counters(ctx, t, []string{m.CounterName()})
	if err != nil {
		return usage{}, fmt.Errorf("read counter of a month: %w", err)
	}
	return usage{month: m, count: values[0]}, nil
}

// monthsAtOnce is how many counters of months are read at a time.
const monthsAtOnce = 1024

// clearLater returns counters of 0 for the months after from, to to, that hold more.
func (l *Ledgers) clearLater(ctx context.Context, t id.Tenant, from, to Month) (cleared []storage.Counter, err error) {
	for begin := from + 1; begin <= to; begin += monthsAtOnce {
		var names []string
		for m := begin; m <= min(to, begin+monthsAtOnce-1); m++ {
			names = append(names, m.CounterName())
		}
		values, err := l.store.Counters(ctx, t, names)
		if err != nil {
			return nil, fmt.Errorf("read counters of later months: %w", err)
		}
		for i, n := range values {
			if n > 0 {
				cleared = append(cleared, storage.Counter{Name: names[i]})
			}
		}
	}
	return cleared, nil
}

// pullLimits returns the changes of the limit counters that hold amounts of a time after now.
func (l *Ledgers) pullLimits(ctx context.Context, t id.Tenant, now id.Instant) (changes []storage.Change, err error) {
	for r, err := range records.Scan(ctx, l.store, t, kindCounter, records.Range{}, 0) {
		if err != nil {
			return nil, fmt.Errorf("read counters of limits: %w", err)
		}
		s, err := parseCounter(r.Key, r.Value)
		if err != nil {
			return nil, err
		}
		if s.MoveBack(now) {
			changes = append(changes, storage.Change{Kind: kindCounter, Key: r.Key, Value: s.AppendTo(nil), If: r.Version})
		}
	}
	return changes, nil
}

// isCurrent reports whether no event came since the change was prepared.
func (c *ClockChange) isCurrent(head storage.Head, arrived bool) bool {
	return c == nil || c.Before == head.LastReceived && (arrived || c.size == head.Size)
}

// correctClock lets a batch go on at the time of a clock change.
func (p *ledgerBatch) correctClock(c *ClockChange) {
	p.putMonthCounter(p.ledger.tail.used)
	p.ledger.tail.used, p.usedBefore = c.used, usage{} // so that the counter is written in any case
	for _, counter := range c.later {
		p.setCounter(counter)
	}
}

// takeClockChange updates the ledger in memory after a durable clock change.
func (l *Ledgers) takeClockChange(p *ledgerBatch) {
	if !slices.ContainsFunc(p.sent, func(s *submission) bool { return s.Clock != nil }) {
		return
	}
	if err := p.ledger.limits.replaceCounters(p.batch.Changes); err != nil { // they were written here
		l.logger.Error("counters of limits are not read", "origin", p.ledger.identity.Origin, "err", err)
	}
	_ = l.noteIfAhead(p.ledger.identity, p.batch.Head.LastReceived, l.clockInstant())
}

// replaceCounters gives the counters in memory the values that a clock change has written.
// The ledger MUST have no other append in flight.
func (ws *limitCounters) replaceCounters(changes []storage.Change) error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.drops++ // a counter that was read before is outdated
	for name, w := range ws.byName {
		i := slices.IndexFunc(changes, func(c storage.Change) bool { return c.Kind == kindCounter && c.Key == name.String() })
		if i < 0 {
			continue
		}
		s, err := parseCounter(name.String(), changes[i].Value)
		if err != nil {
			return err
		}
		w.sum, w.version = s, changes[i].If+1
	}
	return nil
}

// correction is the payload of a ledger_clock event.
type correction struct {
	Newest   id.Instant `json:"newest_received_at"`
	Received id.Instant `json:"received_at"`
	Reason   string     `json:"reason"`
}

// ReadClockChange returns the newest received_at that a server's event of ClockKind
// tells of, which was received at received; 0 for any other event.
func ReadClockChange(e *event.Envelope, received id.Instant) id.Instant {
	var said correction
	if e.ActionKind != ClockKind || json.Unmarshal(e.Payload, &said) != nil || said.Received != received {
		return 0
	}
	return said.Newest
}

// countEvent counts the next event of an import by its month, as the sequencer will. It
// returns the clock change that the event is, nil for all others.
func (i *Import) countEvent(received id.Instant, counted bool) (change *ClockChange, err error) {
	m := MonthOf(received)
	if err := i.loadMonthCount(m); err != nil {
		return nil, err
	}
	if received < i.head.LastReceived {
		if change, err = i.newClockChange(received); err != nil {
			return nil, err
		}
	}
	if counted {
		i.counted[m]++
	}
	return change, nil
}

// loadMonthCount reads the counter of a month before the first event of that month
// arrives: an import that goes on finds the events that were counted before.
func (i *Import) loadMonthCount(m Month) error {
	if _, known := i.counted[m]; known {
		return nil
	}
	stored, err := i.ledgers.readMonthCount(context.Background(), i.led.identity.Tenant, m)
	i.counted[m] = stored.count
	return err
}

// newClockChange is the clock change by which the ledger came back to received.
func (i *Import) newClockChange(received id.Instant) (*ClockChange, error) {
	m := MonthOf(received)
	stored, err := i.ledgers.clearLater(context.Background(), i.led.identity.Tenant, m, MonthOf(i.head.LastReceived))
	if err != nil {
		return nil, err
	}
	c := &ClockChange{Before: i.head.LastReceived, At: received, used: usage{month: m, count: i.counted[m]}, later: stored}
	for _, later := range slices.Sorted(maps.Keys(i.counted)) {
		if name := later.CounterName(); later > m && i.counted[later] > 0 {
			i.counted[later] = 0
			if !slices.Contains(stored, storage.Counter{Name: name}) {
				c.later = append(c.later, storage.Counter{Name: name})
			}
		}
	}
	return c, nil
}
