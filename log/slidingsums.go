package log

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// kindCounter is the kind of the records of counters. The key is the counter's name in hex, the value its sliding sum. A
// record is written by the append whose events add to it.
const kindCounter storage.Kind = "ledger_window"

// Claim is an event's use of a counter: the decision may depend on the sum of the counter in a window that ends with the
// event, and the event adds to the counter.
type Claim struct {
	Counter id.Hash
	Window  time.Duration   // whole milliseconds, more than 0
	Added   decimal.Decimal // not negative
}

// Decide completes a draft that has claims: it returns the record of the event and the policy in it. before contains the
// sums of the counters before the event, in the order of the claims. A denied event adds nothing.
//
// The sequencer calls Decide, and calls it again if an append fails. It must depend only on before, and must not block or
// fail. The receipt of the event contains the policy of the last call.
type Decide func(before []decimal.Decimal) (event.Frame, event.Policy)

// Counted returns the sums of the claims' counters in windows that end at now, over durable events. It reserves nothing, so
// the next event may find larger sums.
func (l *Ledgers) Counted(ctx context.Context, t id.Tenant, claims []Claim, now id.Instant) ([]decimal.Decimal, error) {
	before := make([]decimal.Decimal, len(claims))
	for i, c := range claims {
		w, err := l.readCounter(ctx, t, c.Counter)
		if err != nil {
			return nil, storeError("read counter of a limit", err)
		}
		before[i] = w.sum.At(now, c.Window)
	}
	return before, nil
}

// limitCounter is a counter in memory. Like the tail, its sum is owned by the sequencer.
type limitCounter struct {
	name    id.Hash
	sum     slidingSum
	version uint64 // of its record after all appends in flight; 0: no record
	dirty   bool   // the batch being built added to it

	pins int // submissions that claim it; guarded by limitCounters.mu
}

// readCounter reads a counter. A counter that was never written is empty.
func (l *Ledgers) readCounter(ctx context.Context, t id.Tenant, name id.Hash) (*limitCounter, error) {
	w := &limitCounter{name: name}
	r, err := l.store.Get(ctx, t, kindCounter, name.String())
	if errors.Is(err, storage.ErrNotFound) {
		return w, nil
	}
	if err != nil {
		return nil, err
	}
	w.version = r.Version
	if w.sum, err = parseCounter(name.String(), r.Value); err != nil {
		return nil, err
	}
	return w, nil
}

// parseCounter parses the stored sum of a counter. Its errors wrap storage.ErrCorrupt.
func parseCounter(name string, value []byte) (slidingSum, error) {
	sum, err := parseSlidingSum(value)
	if err != nil {
		return sum, fmt.Errorf("%w: counter %s: %w", storage.ErrCorrupt, name, err)
	}
	return sum, nil
}

// maxCounters is the number of counters beyond which a ledger evicts those that are not pinned.
const maxCounters = 256

// limitCounters are the counters of a ledger in memory. A submission pins the counters that it claims from before it is
// queued until it is answered, so that the sequencer never reads the store. A counter that is not pinned has no append in
// flight and may be evicted.
type limitCounters struct {
	mu     sync.Mutex
	byName map[id.Hash]*limitCounter // nil until the first
	drops  int                       // evictions
}

// pinCounters loads the counters that drafts claim and keeps them in memory until unpinCounters. If it fails, nothing is
// pinned.
func (l *Ledgers) pinCounters(ctx context.Context, led *ledger, drafts []Draft) error {
	for i := range drafts {
		for j := range drafts[i].Claims {
			if err := l.pinCounter(ctx, led, drafts[i].Claims[j].Counter); err != nil {
				led.limits.unpinCounters(listClaimed(drafts, i, j))
				return storeError("read counter of a limit", err)
			}
		}
	}
	return nil
}

// listClaimed returns the counters of all claims of drafts[:n] and of the first m claims of drafts[n].
func listClaimed(drafts []Draft, n, m int) (names []id.Hash) {
	for i := range drafts[:min(n+1, len(drafts))] {
		for j, c := range drafts[i].Claims {
			if i < n || j < m {
				names = append(names, c.Counter)
			}
		}
	}
	return names
}

func (l *Ledgers) pinCounter(ctx context.Context, led *ledger, name id.Hash) error {
	for {
		held, dropped := led.limits.pinIfHeld(name, nil, 0)
		if held {
			return nil
		}
		w, err := l.readCounter(ctx, led.identity.Tenant, name)
		if err != nil {
			return err
		}
		if held, _ = led.limits.pinIfHeld(name, w, dropped); held {
			return nil
		}
	}
}

// pinIfHeld pins a counter that is in memory, or adds w. dropped is the value of ws.drops before w was read: if counters
// were evicted since then, w is not added, because it may be older than an evicted one.
func (ws *limitCounters) pinIfHeld(name id.Hash, w *limitCounter, dropped int) (held bool, now int) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	known := ws.byName[name]
	if known == nil {
		if w == nil || dropped != ws.drops {
			return false, ws.drops
		}
		if ws.byName == nil {
			ws.byName = make(map[id.Hash]*limitCounter)
		}
		known = w
		ws.byName[name] = w
	}
	known.pins++
	return true, ws.drops
}

func (ws *limitCounters) unpinCounters(names []id.Hash) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, name := range names {
		ws.byName[name].pins--
	}
	if len(ws.byName) <= maxCounters {
		return
	}
	for name, w := range ws.byName {
		if w.pins == 0 {
			delete(ws.byName, name)
			ws.drops++
		}
	}
}

// findCounter returns a pinned counter.
func (ws *limitCounters) findCounter(name id.Hash) *limitCounter {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.byName[name]
}

func (ws *limitCounters) listCounters() []*limitCounter {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	all := make([]*limitCounter, 0, len(ws.byName))
	for _, w := range ws.byName {
		all = append(all, w)
	}
	return all
}

// rereadCounters reads the counters in memory again. The ledger must have no append in flight.
func (l *Ledgers) rereadCounters(ctx context.Context, led *ledger) error {
	for _, w := range led.limits.listCounters() {
		stored, err := l.readCounter(ctx, led.identity.Tenant, w.name)
		if err != nil {
			return err
		}
		w.sum, w.version, w.dirty = stored.sum, stored.version, false
	}
	return nil
}

// decideByCounters completes a draft that has claims and adds its amounts to their counters.
func (p *ledgerBatch) decideByCounters(d *Draft, received id.Instant, item int) {
	before := make([]decimal.Decimal, len(d.Claims))
	counters := make([]*limitCounter, len(d.Claims))
	for i, c := range d.Claims {
		counters[i] = p.ledger.limits.findCounter(c.Counter)
		before[i] = counters[i].sum.At(received, c.Window)
	}
	record, decided := d.Decide(before)
	d.Record, d.Columns.Effective, d.decided = record, decided.Effective, &decided
	if d.Columns.Effective == id.Deny {
		return
	}
	for i, c := range d.Claims {
		w := counters[i]
		if c.Added.Sign() == 0 {
			continue
		}
		w.sum.Add(received, c.Added, c.Window)
		if !w.dirty {
			w.dirty = true
			p.counters = append(p.counters, changedCounter{w, item})
		}
	}
}

// changedCounter is a counter that a batch changes, and the first item that changes it.
type changedCounter struct {
	counter *limitCounter
	item    int
}

// putCounters adds the changed counters to the batch.
func (p *ledgerBatch) putCounters() {
	for _, c := range p.counters {
		w := c.counter
		p.batch.Changes = append(p.batch.Changes, storage.Change{
			Kind: kindCounter, Key: w.name.String(), Value: w.sum.AppendTo(nil), If: w.version, Item: c.item,
		})
		w.version++
		w.dirty = false
	}
}

// errMalformedSum is wrapped by the errors of parseSlidingSum.
var errMalformedSum = errors.New("malformed sliding sum")

// A slidingSum of more than maxAmounts amounts merges neighbours that fall into the same one of stepsPerWindow steps of
// its window.
const (
	maxAmounts     = 1024
	stepsPerWindow = maxAmounts / 2
)

// slidingSum is the sum of the amounts that were added within a window of time, for the limits of an agent per hour or
// day. The zero value is empty. It must be used by one goroutine at a time.
//
//   - An amount that was added at t counts in the window that ends at now if now - window < t <= now.
//   - It stores at most maxAmounts amounts. It is exact unless the window has more different times than that. Beyond
//     that an amount may count longer than it should, by at most 1/stepsPerWindow of the window, and never shorter: a
//     limit may hold too long, but is never exceeded.
//   - parseSlidingSum returns the sum that AppendTo stored.
type slidingSum struct {
	amounts  []amount        // by time, ascending
	total    decimal.Decimal // of amounts
	overflow bool            // the total is larger than decimal.Max: it is not kept up to date
}

type amount struct {
	at    id.Instant
	value decimal.Decimal // never negative
}

// At returns the sum of the window that ends at now, and drops earlier amounts. A sum larger than decimal.Max is
// returned as decimal.Max.
func (s *slidingSum) At(now id.Instant, window time.Duration) decimal.Decimal {
	begin, n := now-id.Instant(window.Milliseconds()), 0
	for n < len(s.amounts) && s.amounts[n].at <= begin {
		if !s.overflow {
			s.total, _ = s.total.Sub(s.amounts[n].value) // part of the sum: it never fails
		}
		n++
	}
	s.amounts = s.amounts[n:]
	if s.overflow {
		s.computeTotal()
	}
	if s.overflow {
		return decimal.Max()
	}
	return s.total
}

// computeTotal adds all amounts up.
func (s *slidingSum) computeTotal() {
	s.total, s.overflow = decimal.Decimal{}, false
	for i := range s.amounts {
		s.raiseTotal(s.amounts[i].value)
	}
}

func (s *slidingSum) raiseTotal(by decimal.Decimal) {
	sum, err := s.total.Add(by)
	if s.overflow = s.overflow || err != nil; !s.overflow {
		s.total = sum
	}
}

// Add adds an amount at now, which must not be before the latest amount. The value must be positive.
func (s *slidingSum) Add(now id.Instant, value decimal.Decimal, window time.Duration) {
	s.raiseTotal(value)
	if n := len(s.amounts); n > 0 && s.amounts[n-1].at == now {
		s.amounts[n-1].value = addCapped(s.amounts[n-1].value, value)
		return
	}
	if len(s.amounts) >= maxAmounts {
		s.mergeSteps(window)
	}
	s.amounts = append(s.amounts, amount{now, value})
}

// MoveBack moves amounts that were added after now to now, and reports whether there were any.
func (s *slidingSum) MoveBack(now id.Instant) bool {
	n := len(s.amounts)
	for n > 0 && s.amounts[n-1].at > now {
		n--
	}
	later := s.amounts[n:]
	if len(later) == 0 {
		return false
	}
	last := amount{at: now}
	for _, a := range later {
		last.value = addCapped(last.value, a.value)
	}
	if n > 0 && s.amounts[n-1].at == now {
		n--
		last.value = addCapped(last.value, s.amounts[n].value)
	}
	s.amounts = append(s.amounts[:n:n], last)
	s.computeTotal()
	return true
}

// mergeSteps merges the amounts that fall into the same step of the window.
func (s *slidingSum) mergeSteps(window time.Duration) {
	step := max(1, id.Instant(window.Milliseconds()/stepsPerWindow))
	recent := s.amounts[:1:1]
	for _, a := range s.amounts[1:] {
		last := &recent[len(recent)-1]
		if a.at/step == last.at/step {
			last.at, last.value = a.at, addCapped(last.value, a.value)
			continue
		}
		recent = append(recent, a)
	}
	s.amounts = recent
}

// addCapped adds two decimals; the result is at most decimal.Max.
func addCapped(a, b decimal.Decimal) decimal.Decimal {
	sum, err := a.Add(b)
	if err != nil {
		return decimal.Max()
	}
	return sum
}

// storedForm is the first byte of a stored slidingSum.
const storedForm = 1

// AppendTo appends the stored form. Each amount is stored as the milliseconds since the previous amount, the length of
// its text, and its text.
func (s *slidingSum) AppendTo(b []byte) []byte {
	b = append(b, storedForm)
	var text []byte
	last := id.Instant(0)
	for _, a := range s.amounts {
		b = binary.AppendUvarint(b, uint64(a.at-last))
		text = a.value.Append(text[:0])
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
		last = a.at
	}
	return b
}

// parseSlidingSum parses the stored form. Its errors wrap errMalformedSum.
func parseSlidingSum(b []byte) (s slidingSum, err error) {
	if len(b) == 0 || b[0] != storedForm {
		return s, fmt.Errorf("%w: unknown form", errMalformedSum)
	}
	last := id.Instant(0)
	for b = b[1:]; len(b) > 0; {
		var a amount
		if a, b, err = parseAmount(b, last); err != nil {
			return slidingSum{}, err
		}
		s.amounts = append(s.amounts, a)
		last = a.at
	}
	s.computeTotal()
	return s, nil
}

// maxInstant is far later than any time that is stored.
const maxInstant = 1 << 53

func parseAmount(b []byte, last id.Instant) (a amount, rest []byte, err error) {
	later, n := binary.Uvarint(b)
	if n <= 0 || later == 0 || later > maxInstant || last+id.Instant(later) > maxInstant {
		return a, nil, fmt.Errorf("%w: time", errMalformedSum)
	}
	b = b[n:]
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return a, nil, fmt.Errorf("%w: length", errMalformedSum)
	}
	b = b[n:]
	a.at = last + id.Instant(later)
	if a.value, err = decimal.Parse(string(b[:length])); err != nil || a.value.Sign() <= 0 {
		return a, nil, fmt.Errorf("%w: amount", errMalformedSum)
	}
	return a, b[length:], nil
}
