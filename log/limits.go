package log

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// kindCounter is the kind of the records of counters. The key is the name of the counter in hex, the value its
// sliding sum. A record is written in the append of the events that add to it.
const kindCounter storage.Kind = "ledger_window"

// Claim is the claim of an event on a counter: the decision may depend on the sum of the
// counter in a window that ends with the event, and the event adds to the counter.
type Claim struct {
	Counter id.Hash
	Window  time.Duration   // whole milliseconds, more than 0
	Added   decimal.Decimal // not negative
}

// Decide finishes a draft that has claims: it returns the record of the event and the
// policy in that record. before has the sums of the counters before the event, in the
// order of the claims. An event with the effective decision deny adds nothing.
//
// The sequencer calls Decide, more than once if an append fails. It MUST depend on nothing but before, and MUST NOT
// wait or fail. The receipt of the event carries the policy of the last call.
type Decide func(before []decimal.Decimal) (event.Frame, event.Policy)

// Counted returns the sums of counters in windows that end at now, as durable events made
// them. The next event may find more. Counted reserves nothing.
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

// limitCounter is a counter in memory. The sequencer alone uses its sum, as it does with a tail.
type limitCounter struct {
	name    id.Hash
	sum     slidingSum
	version uint64 // of its record when all that is out has landed; 0: none
	dirty   bool   // the batch being built added to it

	pins int // submissions that claim it; guarded by limitCounters.mu
}

// readCounter reads a counter. One that was never written is empty.
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

// parseCounter reads the stored sum of a counter. It wraps storage.ErrCorrupt.
func parseCounter(name string, value []byte) (slidingSum, error) {
	sum, err := parseSlidingSum(value)
	if err != nil {
		return sum, fmt.Errorf("%w: counter %s: %w", storage.ErrCorrupt, name, err)
	}
	return sum, nil
}

// maxCounters bounds the counters of a ledger that are in memory and not pinned.
const maxCounters = 256

// limitCounters are the counters of a ledger in memory. A submission pins the counters that it claims before it is
// queued and until it is answered, so that the sequencer never reads the store. A counter that is not pinned has no
// append in flight and may be evicted.
type limitCounters struct {
	mu     sync.Mutex
	byName map[id.Hash]*limitCounter // nil until the first
	drops  int                       // how often some were
}

// pinCounters brings the counters that drafts claim into memory and keeps them there
// until unpin. With an error nothing is pinned.
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

// listClaimed returns the counters that drafts claim: all claims of those before
// number n, and the first m of that one.
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

// pinIfHeld pins a counter that is in memory, or puts w there. drops is the value of ws.drops before w was read. If
// counters were dropped since, w is not taken, because it may be older than a dropped one.
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

// findCounter returns a counter that a submission pinned.
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

// rereadCounters reads the counters in memory again, of a ledger that has no append in flight.
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

// decideByCounters finishes a draft that has claims, and adds its amounts to their counters.
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

// changedCounter is a counter that a batch changes, and the first item that does.
type changedCounter struct {
	counter *limitCounter
	item    int
}

// putCounters puts the changed counters into the batch.
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
