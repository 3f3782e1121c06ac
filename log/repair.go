package log

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/storage"
)

// failedBatch is a batch that was not applied or whose outcome is unknown.
type failedBatch struct {
	batch *ledgerBatch
	err   error
}

// Repairs read the store, which has few connections. These bounds leave some for others, and end a repair that the store
// does not answer.
const (
	maxRepairs = 8
	repairTime = 10 * time.Second
)

// repairLedger resumes a ledger after failed appends, once no append of the ledger is in flight. It writes the anchors,
// passes a barrier and takes the ledger over again. Then it finds out which batches were applied after all, and queues the
// others again in their old order. The anchors are written first, because a store that failed may return in an older
// state, which must be compared with the latest checkpoints that were shown.
//
// A ledger that the process no longer owns is given up.
func (l *Ledgers) repairLedger(led *ledger) {
	led.failedMu.Lock()
	failed := led.failed
	led.failed = nil
	led.failedMu.Unlock()
	defer l.queue.noteFinished(len(failed))
	ctx, cancel := context.WithTimeout(context.Background(), repairTime)
	defer cancel()
	lost := l.fences.Check(led.identity.Tenant) != nil
	err := syncs.Within(ctx, l.anchors.Flush)
	if err == nil {
		err = l.store.Barrier(ctx)
	}
	if slices.ContainsFunc(failed, func(f failedBatch) bool { return errors.Is(f.err, storage.ErrUnknown) }) {
		l.fences.Forget(led.identity.Tenant) // raises the epoch, so that the append can't take effect later
	}
	if err == nil && !lost {
		err = l.refreshKeys(ctx, led)
	}
	if err == nil && !lost {
		err = l.takeOver(ctx, led)
	}
	if lost || errors.Is(err, ErrNotOwner) {
		l.giveUpLedger(ctx, led, failed, err)
		return
	}
	if err != nil {
		l.abandonLedger(led, failed, err)
		return
	}
	if led.published.Load().Trusted() == nil { // readers now see batches that were applied after all
		if !l.importing {
			l.anchors.Touch(led)
		}
		l.moves.Tell(led.identity.Tenant)
	}
	l.relisted.Tell(led.identity.Tenant)
	var again []*submission
	for _, f := range failed {
		again = append(again, l.resolveFailed(ctx, led, f)...)
	}
	l.queue.unblockLedger(led, again)
}

// resolveFailed answers the submissions of a failed batch whose outcome is certain, and returns those to append again.
func (l *Ledgers) resolveFailed(ctx context.Context, led *ledger, f failedBatch) []*submission {
	p := f.batch
	l.metrics.Failures.WithLabelValues(causeOf(f.err)).Inc()
	if errors.Is(f.err, storage.ErrUnknown) {
		applied, err := l.wasApplied(ctx, p)
		if err != nil {
			p.refuseAll(outcomeUnknown(err))
			return nil
		}
		if applied {
			p.answerSent(led.published.Load().fault.Level == Healthy)
			p.answerDuplicates()
			return nil
		}
	}
	known, err := l.knownNames(ctx, led, p, f.err)
	if err != nil {
		p.refuseAll(err)
		return nil
	}
	var named *storage.ItemError
	errors.As(f.err, &named)
	var again []*submission
	attempts := maxAttempts
	refusal := overloaded("The ledger could not be written")
	if errors.Is(f.err, storage.ErrUnavailable) {
		attempts, refusal = maxRefusals, unavailable(f.err)
	}
	for i, s := range append(p.sent, p.duplicates...) {
		switch {
		case s.hasKnownKey(known):
			s.refuseWith(ErrDuplicate)
		case i < len(p.sent) && named != nil && named.Item == i && errors.Is(named, storage.ErrStale):
			s.askAgain()
		case (named == nil || i < len(p.sent) && i == named.Item) && s.countAttempt() >= attempts:
			s.refuseWith(refusal)
		default:
			again = append(again, s)
		}
	}
	return again
}

// countAttempt counts a failed attempt and returns the number so far.
func (s *submission) countAttempt() int {
	s.attempts++
	return s.attempts
}

// hasKnownKey reports whether names contains a deduplication key of the submission.
func (s *submission) hasKnownKey(names map[storage.DedupKey]bool) bool {
	for i := range s.Drafts {
		for n := range s.Drafts[i].yieldKeys {
			if names[n] {
				return true
			}
		}
	}
	return false
}

// knownNames returns the deduplication keys of a batch that are stored, if the batch failed because of a duplicate. The
// engine reports only the first one.
func (l *Ledgers) knownNames(ctx context.Context, led *ledger, p *ledgerBatch, cause error) (map[storage.DedupKey]bool, error) {
	if !errors.Is(cause, storage.ErrDuplicate) {
		return nil, nil
	}
	var names []storage.DedupKey
	for _, s := range append(p.sent, p.duplicates...) {
		for i := range s.Drafts {
			names = slices.AppendSeq(names, s.Drafts[i].yieldKeys)
		}
	}
	at, err := l.store.Lookup(ctx, led.identity.Tenant, names)
	if err != nil {
		return nil, storeError("look up duplicates", err)
	}
	known := make(map[storage.DedupKey]bool)
	for i, index := range at {
		if index < led.tail.head.Size {
			known[names[i]] = true
		}
	}
	return known, nil
}

// wasApplied reports whether a batch is in the store: its first event is at the same index with the same hashes.
func (l *Ledgers) wasApplied(ctx context.Context, p *ledgerBatch) (bool, error) {
	names := []storage.DedupKey{{Text: string(p.batch.Events[0].ID)}}
	at, err := l.store.Lookup(ctx, p.batch.Tenant, names)
	if err != nil {
		return false, fmt.Errorf("look up the batch: %w", err)
	}
	first := p.batch.Events[0]
	if at[0] != first.Index {
		return false, nil
	}
	stored, err := ReadEvent(ctx, l.store, p.batch.Tenant, first.Index, 0)
	if err != nil {
		return false, fmt.Errorf("read the batch: %w", err)
	}
	return stored.Entry == first.Entry, nil
}

// abandonLedger answers all submissions of a ledger that can't be read, and retires it. The next submission loads it
// again. Until then readers see its published state, which is durable.
func (l *Ledgers) abandonLedger(led *ledger, failed []failedBatch, cause error) {
	l.logger.Error("ledger could not be read again", "origin", led.identity.Origin, "err", cause)
	for _, f := range failed {
		if errors.Is(f.err, storage.ErrUnknown) || errors.Is(f.err, storage.ErrBroken) {
			f.batch.refuseAll(outcomeUnknown(cause))
		} else {
			f.batch.refuseAll(unavailable(cause))
		}
	}
	for _, s := range l.queue.retireLedger(led) {
		s.refuseWith(unavailable(cause))
	}
}

func (p *ledgerBatch) refuseAll(err error) {
	for _, s := range p.sent {
		s.refuseWith(err)
	}
	for _, s := range p.duplicates {
		s.refuseWith(err)
	}
}

// giveUpLedger answers all submissions of a ledger that the process no longer owns, and drops it. It looks up appends whose
// outcome is unknown first. cause is ErrNotOwner, nil, or the error if the store can't be read.
func (l *Ledgers) giveUpLedger(ctx context.Context, led *ledger, failed []failedBatch, cause error) {
	g := givingUp{ledgers: l, err: cause}
	if cause == nil || errors.Is(cause, ErrNotOwner) {
		g.head, g.err = l.store.Head(ctx, led.identity.Tenant)
	}
	for _, f := range failed {
		l.metrics.Failures.WithLabelValues(causeOf(f.err)).Inc()
		g.answer(ctx, f)
	}
	for _, s := range l.queue.retireLedger(led) {
		s.refuseWith(ErrNotOwner)
	}
	l.slotsMu.Lock()
	defer l.slotsMu.Unlock()
	if t := led.identity.Tenant; l.slots[t] != nil && l.slots[t].led == led {
		delete(l.slots, t)
	}
}

// givingUp answers the failed batches of such a ledger in their order.
type givingUp struct {
	ledgers *Ledgers
	head    storage.Head // as it is stored
	err     error        // why head is unknown
	open    bool         // an earlier append may still take effect
}

var errOpen = errors.New("the append may still take effect")

// answer answers the submissions of one failed batch.
func (g *givingUp) answer(ctx context.Context, f failedBatch) {
	p := f.batch
	if !errors.Is(f.err, storage.ErrUnknown) && !errors.Is(f.err, storage.ErrBroken) {
		p.refuseAll(ErrNotOwner)
		return
	}
	applied, err := false, g.err
	if err == nil {
		applied, err = g.ledgers.wasApplied(ctx, p)
	}
	if err == nil && applied {
		p.takeNewKeys(g.ledgers)
		err = g.ledgers.anchors.Put(p.state.Checkpoint())
	}
	if err == nil && !applied && (g.open || g.head == p.batch.Expect) {
		g.open, err = true, errOpen
	}
	switch {
	case err != nil:
		p.refuseAll(outcomeUnknown(err))
	case applied:
		p.answerSent(p.state.fault.Level == Healthy)
		p.answerDuplicates()
	default:
		p.refuseAll(ErrNotOwner)
	}
}
