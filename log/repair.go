package log

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentledger/agentledger/storage"
)

// failedPart is a part whose append did not go through, or of which that is
// not known.
type failedPart struct {
	part *part
	err  error
}

// Repairs read the store, which has few connections for that: some stay free for
// others, and one that the store leaves without an answer is given up.
const (
	maxRepairs = 8
	repairTime = 10 * time.Second
)

// repair brings a ledger back after appends that failed, when none of it is
// out any more: it writes the anchors, passes a barrier, reads the ledger again,
// finds out which parts were applied after all, and queues the others anew in
// their old order. The anchors go first: a store that failed may have come back
// as an older one, and what is read is compared with what was shown up to now.
func (l *Ledgers) repair(led *ledger) {
	led.failedMu.Lock()
	failed := led.failed
	led.failed = nil
	led.failedMu.Unlock()
	defer l.queue.rested(len(failed))
	ctx, cancel := context.WithTimeout(context.Background(), repairTime)
	defer cancel()
	err := within(ctx, l.anchors.Flush)
	if err == nil {
		err = l.store.Barrier(ctx)
	}
	if err == nil {
		err = l.refreshKeys(ctx, led)
	}
	if err == nil {
		err = l.refresh(ctx, led)
	}
	if err != nil {
		l.giveUp(led, failed, err)
		return
	}
	if led.published.Load().Trusted() == nil { // what was applied after all is shown from now on
		if !l.importing {
			l.anchors.Touch(led)
		}
		l.moves.tell(led.identity.Tenant)
	}
	l.relisted.tell(led.identity.Tenant)
	var again []*submission
	for _, f := range failed {
		again = append(again, l.resolve(ctx, led, f)...)
	}
	l.queue.unblock(led, again)
}

// resolve answers what can be answered of a failed part and returns the rest.
func (l *Ledgers) resolve(ctx context.Context, led *ledger, f failedPart) []*submission {
	p := f.part
	l.metrics.failures.WithLabelValues(failureLabel(f.err)).Inc()
	if errors.Is(f.err, storage.ErrUnknown) {
		applied, err := l.applied(ctx, p)
		if err != nil {
			p.refuseAll(outcomeUnknown(err))
			return nil
		}
		if applied {
			p.answer(led.published.Load().fault.Level == Healthy)
			p.answerLate()
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
	for i, s := range append(p.sent, p.late...) {
		switch {
		case s.known(known):
			s.refuse(ErrDuplicate)
		case i < len(p.sent) && named != nil && named.Item == i && errors.Is(named, storage.ErrStale):
			s.sendBack()
		case (named == nil || i < len(p.sent) && i == named.Item) && s.tried() >= attempts:
			s.refuse(refusal)
		default:
			again = append(again, s)
		}
	}
	return again
}

// tried counts an attempt that failed and returns how many there were.
func (s *submission) tried() int {
	s.attempts++
	return s.attempts
}

// known reports whether a name of the submission is among names.
func (s *submission) known(names map[storage.DedupKey]bool) bool {
	for i := range s.Drafts {
		for n := range s.Drafts[i].names {
			if names[n] {
				return true
			}
		}
	}
	return false
}

// knownNames returns which names of a part that met a duplicate are taken: the
// engine named only the first.
func (l *Ledgers) knownNames(ctx context.Context, led *ledger, p *part, cause error) (map[storage.DedupKey]bool, error) {
	if !errors.Is(cause, storage.ErrDuplicate) {
		return nil, nil
	}
	var names []storage.DedupKey
	for _, s := range append(p.sent, p.late...) {
		for i := range s.Drafts {
			names = slices.AppendSeq(names, s.Drafts[i].names)
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

// applied reports whether the events of a part are in the store, by their
// entries: the same numbers with the same hashes.
func (l *Ledgers) applied(ctx context.Context, p *part) (bool, error) {
	names := []storage.DedupKey{{Text: string(p.batch.Events[0].ID)}}
	at, err := l.store.Lookup(ctx, p.batch.Tenant, names)
	if err != nil {
		return false, fmt.Errorf("look up the batch: %w", err)
	}
	first := p.batch.Events[0]
	if at[0] != first.Index {
		return false, nil
	}
	stored, err := one(l.store.Events(ctx, p.batch.Tenant, first.Index, first.Index+1, 0))
	if err != nil {
		return false, fmt.Errorf("read the batch: %w", err)
	}
	return stored.Entry == first.Entry, nil
}

// giveUp answers everything of a ledger that can't be read. It takes no events any
// more; the next submission has it read again, and until then its published state,
// which is durable, is what readers see.
func (l *Ledgers) giveUp(led *ledger, failed []failedPart, cause error) {
	l.logger.Error("ledger could not be read again", "origin", led.identity.Origin, "err", cause)
	for _, f := range failed {
		if errors.Is(f.err, storage.ErrUnknown) || errors.Is(f.err, storage.ErrBroken) {
			f.part.refuseAll(outcomeUnknown(cause))
		} else {
			f.part.refuseAll(unavailable(cause))
		}
	}
	for _, s := range l.queue.retire(led) {
		s.refuse(unavailable(cause))
	}
}

// within waits for work until ctx ends. The work goes on then.
func within(ctx context.Context, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *part) refuseAll(err error) {
	for _, s := range p.sent {
		s.refuse(err)
	}
	for _, s := range p.late {
		s.refuse(err)
	}
}
