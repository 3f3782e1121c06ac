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

// received_at never decreases. If the latest event is in the future, later events would repeat its received_at until the
// clock catches up, and the counters of months and limits would not advance either. So a ledger that is ahead of the clock
// by more than earlyBound accepts no events.

// earlyBound is how far the latest received_at may be ahead of the clock. Within the bound the next event gets the same
// received_at, because clocks are corrected by small amounts in normal operation.
const earlyBound = clock.Bound

// aheadLedgers is the set of ledgers known to be ahead of the clock.
type aheadLedgers struct {
	mu      sync.Mutex
	tenants map[id.Tenant]struct{} // nil until the first
}

// noteAhead adds a ledger and reports whether it was not in the set.
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

// clockInstant returns the time of Options.Clock.
func (l *Ledgers) clockInstant() id.Instant { return id.InstantOf(l.clock()) }

// Timely returns nil if decisions for the ledger of s may depend on the time. If the clock is held or the ledger is ahead
// of the clock, it returns fault.Unavailable with code clock.
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
	return clock.Refusal(fmt.Sprintf("the latest event was received at %s, which is in the future", newest))
}

// noteIfAhead is checkAhead for the end of a ledger. It counts the ledgers that are ahead and logs each once.
func (l *Ledgers) noteIfAhead(identity *Identity, newest, now id.Instant) error {
	if l.importing { // imported events have their received_at
		return nil
	}
	err := checkAhead(newest, now)
	switch {
	case err == nil:
		l.ahead.forgetAhead(identity.Tenant)
	case l.ahead.noteAhead(identity.Tenant):
		l.logger.Error("ledger accepts no events: its latest event was received in the future; run correct-clock to resume it",
			"origin", identity.Origin, "received_at", newest, "ahead", time.Duration(newest-now)*time.Millisecond)
	}
	return err
}

// A ledger that got events while a clock was ahead accepts no more events until the clock catches up, or until an operator
// appends an event of the server that states the correction. It is the only kind of event whose received_at may be earlier
// than that of the event before it.

// ClockKind is the action_kind of the event that states a ClockChange.
const ClockKind = "ledger_clock"

// ClockChange sets received_at of the event of its submission to At, which is earlier than the latest event of the ledger.
// Counting continues in the month of At, later months begin with 0, and amounts that limits have counted after At count as
// if they were added at At.
//
// For example, a clock showed January 2028 for 3 seconds in November 2026, and 20 events were appended. They stay as they
// are. Counting continues with the count of November 2026, and January 2028 will begin with 0.
type ClockChange struct {
	Before id.Instant // received_at of the latest event
	At     id.Instant // received_at of the event that states the change

	size   id.Index          // of the ledger when the counters below were read
	used   usage             // of the month of At
	later  []storage.Counter // 0 for later months that have a count
	limits []storage.Change
}

// Payload returns the payload of the event. reason is public.
func (c *ClockChange) Payload(reason string) map[string]any {
	return map[string]any{"newest_received_at": c.Before.String(), "received_at": c.At.String(), "reason": reason}
}

// CorrectClock returns the change by which a ledger that is ahead of the clock continues at the time of the clock. The only
// event of the submission must state it (ClockKind, Payload). It returns fault.Conflict if the ledger is not ahead.
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

// readMonthCount reads the usage of a month.
func (l *Ledgers) readMonthCount(ctx context.Context, t id.Tenant, m Month) (usage, error) {
	values, err := l.store.Counters(ctx, t, []string{m.CounterName()})
	if err != nil {
		return usage{}, fmt.Errorf("read counter of a month: %w", err)
	}
	return usage{month: m, count: values[0]}, nil
}

// monthsAtOnce is the number of months' counters in one read.
const monthsAtOnce = 1024

// clearLater returns zero counters for the months in (from, to] whose counters are not zero.
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

// pullLimits returns the changes that move the amounts of limit counters after now to now.
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

// isCurrent reports whether no event was appended since the change was prepared. A nil change is always current.
func (c *ClockChange) isCurrent(head storage.Head, arrived bool) bool {
	return c == nil || c.Before == head.LastReceived && (arrived || c.size == head.Size)
}

// correctClock sets the counters of a batch to those of a clock change.
func (p *ledgerBatch) correctClock(c *ClockChange) {
	p.putMonthCounter(p.ledger.tail.used)
	p.ledger.tail.used, p.usedBefore = c.used, usage{} // so that the counter is always written
	for _, counter := range c.later {
		p.setCounter(counter)
	}
}

// takeClockChange updates a ledger in memory after a durable clock change.
func (l *Ledgers) takeClockChange(p *ledgerBatch) {
	if !slices.ContainsFunc(p.sent, func(s *submission) bool { return s.Clock != nil }) {
		return
	}
	if err := p.ledger.limits.replaceCounters(p.batch.Changes); err != nil { // this process has written them, so this is not expected
		l.logger.Error("counters of limits can't be read", "origin", p.ledger.identity.Origin, "err", err)
	}
	_ = l.noteIfAhead(p.ledger.identity, p.batch.Head.LastReceived, l.clockInstant())
}

// replaceCounters sets the counters in memory to the values that a clock change has written. The ledger must have no other
// append in flight.
func (ws *limitCounters) replaceCounters(changes []storage.Change) error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.drops++ // counters that are being read are outdated
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

// correction is the payload of an event of ClockKind.
type correction struct {
	Newest   id.Instant `json:"newest_received_at"`
	Received id.Instant `json:"received_at"`
	Reason   string     `json:"reason"`
}

// ReadClockChange returns the latest received_at before a clock change from the server's event of ClockKind. It returns 0
// for any other event, and if the event does not state its own received_at.
func ReadClockChange(e *event.Envelope, received id.Instant) id.Instant {
	var c correction
	if e.ActionKind != ClockKind || json.Unmarshal(e.Payload, &c) != nil || c.Received != received {
		return 0
	}
	return c.Newest
}

// countEvent counts the next event of an import in its month, as the sequencer will. It returns the clock change that the
// event states, or nil.
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

// loadMonthCount reads the counter of a month before the first event of that month is imported, because a resumed import
// has counted events already.
func (i *Import) loadMonthCount(m Month) error {
	if _, known := i.counted[m]; known {
		return nil
	}
	stored, err := i.ledgers.readMonthCount(context.Background(), i.led.identity.Tenant, m)
	i.counted[m] = stored.count
	return err
}

// newClockChange returns the clock change by which the ledger continued at received.
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
