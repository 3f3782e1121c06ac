package log

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/log/takeover"
	"github.com/agentledger/agentledger/storage"
)

// Release ends the work for all ledgers that match, which the process no longer owns (Options.Owned). Events that are
// queued already are appended and answered. The ledgers leave memory; States that callers hold stay valid.
//
// Release returns when no work is in flight for the ledgers and the anchors of everything shown are written, or with an
// error soon after ctx ends. An append that is still in flight then is answered when it ends: by receipts if it was
// stored, and otherwise by an unknown outcome or ErrNotOwner. Release does not read the store for idle ledgers.
func (l *Ledgers) Release(ctx context.Context, match func(id.Tenant) bool) error {
	// From now on, loading one of the ledgers takes it over again.
	l.fences.ForgetAll(match)

	// No ledger takes further submissions or can be found. Those with work in flight are kept in l.ending, so
	// that they are not loaded a second time before that ends.
	var busy []*cacheSlot
	l.slotsMu.Lock()
	maps.DeleteFunc(l.ending, func(_ id.Tenant, led *ledger) bool { return l.queue.endLedger(led) })
	for t, r := range l.slots {
		if !match(t) {
			continue
		}
		delete(l.slots, t)
		l.ahead.forgetAhead(t)
		for ; r != nil; r = r.next {
			r.ended = true // refuses the ledger if it is still being loaded
			switch {
			case !r.isReady():
				busy = append(busy, r)
			case r.led != nil && !l.queue.endLedger(r.led):
				busy = append(busy, r)
				if l.ending == nil {
					l.ending = make(map[id.Tenant]*ledger)
				}
				l.ending[t] = r.led
			}
		}
	}
	l.slotsMu.Unlock()

	// Wait for ledgers that are being loaded, then for appends and repairs, then for the anchors of what those showed.
	for _, r := range busy {
		select {
		case <-r.ready:
		case <-ctx.Done():
		}
	}
	err := l.queue.awaitReleased(ctx, busy)
	if err == nil {
		err = syncs.Within(ctx, l.anchors.Flush)
	}
	if err != nil {
		return fmt.Errorf("release ledgers: %s: %w", l.queue.describeWork(), err)
	}
	return nil
}

var errEnding = errors.New("work from before the release is still in flight")

// checkEnded returns an error if a released ledger still has work in flight. It must not be loaded yet, because two
// instances of a ledger could be part of one append.
func (l *Ledgers) checkEnded(t id.Tenant) error {
	l.slotsMu.Lock()
	defer l.slotsMu.Unlock()
	if led := l.ending[t]; led != nil && !l.queue.endLedger(led) {
		return unavailable(errEnding)
	}
	delete(l.ending, t)
	return nil
}

// refuseEnded makes a slot fail if it was released while its ledger was being loaded.
func (l *Ledgers) refuseEnded(r *cacheSlot) {
	l.slotsMu.Lock()
	defer l.slotsMu.Unlock()
	if r.ended {
		r.led, r.err = nil, ErrNotOwner
	}
}

// endLedger makes a ledger accept no more submissions and reports whether it is at rest.
func (q *queue) endLedger(led *ledger) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	led.pending.evicted.Store(true)
	return led.isAtRest()
}

// isAtRest reports whether nothing waits, is in flight or is being repaired. The caller must hold queue.mu.
func (led *ledger) isAtRest() bool {
	return led.pending.out == 0 && len(led.pending.waiting) == 0 && (!led.pending.blocked || led.retired.Load())
}

// awaitReleased waits until the ledgers of all slots are at rest. It returns the error of ctx if ctx ends first.
func (q *queue) awaitReleased(ctx context.Context, slots []*cacheSlot) error {
	defer context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.landing.Broadcast()
	})()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range slots {
		for ctx.Err() == nil && r.led != nil && !r.led.isAtRest() {
			q.landing.Wait()
		}
	}
	return ctx.Err()
}

// Retire permanently marks a ledger as moved, so that it accepts no more events here. It fails if head is not the stored
// head. A server that has the ledger in memory is fenced by the epoch: its next append fails, and it finds the mark when
// it reads the ledger again.
func Retire(ctx context.Context, store Store, t id.Tenant, head storage.Head) error {
	l := &Ledgers{store: store, clock: time.Now}
	known, err := l.readFault(ctx, t)
	if err != nil || known.Level == Moved {
		return err
	}
	value, err := json.Marshal(Fault{
		Level: Moved, At: id.InstantOf(l.clock()), Reason: fmt.Sprintf("moved to another store at size %d", head.Size),
	})
	if err != nil {
		return fmt.Errorf("retire: %w", err)
	}
	batch := storage.Batch{Tenant: t, Expect: head, Head: takeover.Raise(head), Changes: []storage.Change{{Kind: kindFault, Value: value}}}
	err = store.Append([]storage.Batch{batch}).Wait()[0]
	if errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrStale) {
		err = fmt.Errorf("the ledger was written in the meantime: stop the server: %w", err)
	}
	if err != nil {
		return fmt.Errorf("retire: %w", err)
	}
	return nil
}

// Local reports whether records of a kind describe one store's copy of a ledger, so that they must not be copied.
func Local(kind storage.Kind) bool {
	return kind == kindFault || kind == KindReverified || kind.Derived()
}
