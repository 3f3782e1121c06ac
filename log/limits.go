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
	"github.com/agentledger/agentledger/internal/slidingsum"
	"github.com/agentledger/agentledger/storage"
)

// kindWindow is the family of counters' records: the name of the counter in hex,
// and a series. A record is written in the appends whose events add to it.
const kindWindow storage.Kind = "ledger_window"

// Claim is what an event asks of a counter: whether something follows from what
// the counter holds of a window that ends with the event, and to add to it.
type Claim struct {
	Counter id.Hash
	Window  time.Duration   // whole milliseconds, more than 0
	Added   decimal.Decimal // not negative
}

// Decide finishes a draft that has claims: it returns the record of the event and the
// policy in that record. before has the sums of the counters before the event, in the
// order of the claims. An event with the effective decision deny adds nothing.
//
// The sequencer calls Decide, more than once if an append fails. It MUST depend on
// nothing but before, and MUST NOT wait or fail. The receipt of the event carries the
// policy of the last call.
type Decide func(before []decimal.Decimal) (event.Frame, event.Policy)

// Counted returns what counters hold of windows that end at now, as durable
// events made them: the next event may find more. It reserves nothing.
func (l *Ledgers) Counted(ctx context.Context, t id.Tenant, claims []Claim, now id.Instant) ([]decimal.Decimal, error) {
	before := make([]decimal.Decimal, len(claims))
	for i, c := range claims {
		w, err := l.readWindow(ctx, t, c.Counter)
		if err != nil {
			return nil, storeError("read counter of a limit", err)
		}
		before[i] = w.sum.At(now, c.Window)
	}
	return before, nil
}

// window is a counter in memory. Its series is the sequencer's, as a tail is.
type window struct {
	name    id.Hash
	sum     slidingsum.Sum
	version uint64 // of its record when all that is out has landed; 0: none
	dirty   bool   // the part being built added to it

	pins int // submissions that need it; guarded by windows.mu
}

// readWindow reads a counter. One that was never written is empty.
func (l *Ledgers) readWindow(ctx context.Context, t id.Tenant, name id.Hash) (*window, error) {
	w := &window{name: name}
	r, err := l.store.Get(ctx, t, kindWindow, name.String())
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
func parseCounter(name string, value []byte) (slidingsum.Sum, error) {
	sum, err := slidingsum.Parse(value)
	if err != nil {
		return sum, fmt.Errorf("%w: counter %s: %w", storage.ErrCorrupt, name, err)
	}
	return sum, nil
}

// maxWindows is how many counters a ledger keeps in memory that nothing under way
// needs.
const maxWindows = 256

// windows are the counters of a ledger in memory. A submission pins those that it
// claims from before it is queued until it is answered, so that the sequencer
// never reads the store. What is not pinned has nothing out.
type windows struct {
	mu      sync.Mutex
	held    map[id.Hash]*window // nil until the first
	dropped int                 // how often some were
}

// pin brings the counters that drafts claim into memory and keeps them there
// until unpin. With an error nothing is pinned.
func (l *Ledgers) pin(ctx context.Context, led *ledger, drafts []Draft) error {
	for i := range drafts {
		for j := range drafts[i].Claims {
			if err := l.pinOne(ctx, led, drafts[i].Claims[j].Counter); err != nil {
				led.windows.unpin(claimed(drafts, i, j))
				return storeError("read counter of a limit", err)
			}
		}
	}
	return nil
}

// claimed returns the counters that drafts claim: all claims of those before
// number n, and the first m of that one.
func claimed(drafts []Draft, n, m int) (names []id.Hash) {
	for i := range drafts[:min(n+1, len(drafts))] {
		for j, c := range drafts[i].Claims {
			if i < n || j < m {
				names = append(names, c.Counter)
			}
		}
	}
	return names
}

func (l *Ledgers) pinOne(ctx context.Context, led *ledger, name id.Hash) error {
	for {
		held, dropped := led.windows.hold(name, nil, 0)
		if held {
			return nil
		}
		w, err := l.readWindow(ctx, led.identity.Tenant, name)
		if err != nil {
			return err
		}
		if held, _ = led.windows.hold(name, w, dropped); held {
			return nil
		}
	}
}

// hold pins a counter that is in memory, or puts w there. w was read after dropped
// was: it is not taken when counters were dropped since, as it may be older than
// what one of them was.
func (ws *windows) hold(name id.Hash, w *window, dropped int) (held bool, now int) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	known := ws.held[name]
	if known == nil {
		if w == nil || dropped != ws.dropped {
			return false, ws.dropped
		}
		if ws.held == nil {
			ws.held = make(map[id.Hash]*window)
		}
		known = w
		ws.held[name] = w
	}
	known.pins++
	return true, ws.dropped
}

func (ws *windows) unpin(names []id.Hash) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, name := range names {
		ws.held[name].pins--
	}
	if len(ws.held) <= maxWindows {
		return
	}
	for name, w := range ws.held {
		if w.pins == 0 {
			delete(ws.held, name)
			ws.dropped++
		}
	}
}

// get returns a counter that a submission pinned.
func (ws *windows) get(name id.Hash) *window {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.held[name]
}

func (ws *windows) all() []*window {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	all := make([]*window, 0, len(ws.held))
	for _, w := range ws.held {
		all = append(all, w)
	}
	return all
}

// rereadWindows makes the counters in memory what is stored, of a ledger of which
// nothing is out.
func (l *Ledgers) rereadWindows(ctx context.Context, led *ledger) error {
	for _, w := range led.windows.all() {
		stored, err := l.readWindow(ctx, led.identity.Tenant, w.name)
		if err != nil {
			return err
		}
		w.sum, w.version, w.dirty = stored.sum, stored.version, false
	}
	return nil
}

// decide finishes a draft that has claims, and adds them to their counters.
func (p *part) decide(d *Draft, received id.Instant, item int) {
	before := make([]decimal.Decimal, len(d.Claims))
	counters := make([]*window, len(d.Claims))
	for i, c := range d.Claims {
		counters[i] = p.ledger.windows.get(c.Counter)
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
			p.counters = append(p.counters, counter{w, item})
		}
	}
}

// counter is a window that a part changes, and the first item that does.
type counter struct {
	window *window
	item   int
}

// putCounters puts the counters that the part changes into its batch.
func (p *part) putCounters() {
	for _, c := range p.counters {
		w := c.window
		p.batch.Changes = append(p.batch.Changes, storage.Change{
			Kind: kindWindow, Key: w.name.String(), Value: w.sum.AppendTo(nil), If: w.version, Item: c.item,
		})
		w.version++
		w.dirty = false
	}
}
