package log

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/storage"
)

// finishAppends is the finisher of one stream. It awaits the appends in their order, publishes the durable batches and
// answers the submissions.
func (l *Ledgers) finishAppends(appends <-chan appendInFlight) {
	for f := range appends {
		results := l.awaitAppend(f)
		l.observeAppend(f)
		l.queue.noteOutcome(f)
		for _, led := range l.landAppend(f, results) {
			l.done.Go(func() {
				l.repairs <- struct{}{}
				defer func() { <-l.repairs }()
				l.repairLedger(led)
			})
		}
	}
}

// awaitAppend waits for an append and returns the outcomes of its batches. In the meantime it reads back the entries that
// the batches link to.
func (l *Ledgers) awaitAppend(f appendInFlight) []error {
	if f.pending == nil {
		return nil
	}
	l.readEntriesBack(f)
	return l.anchorFirst(f, f.pending.Wait())
}

// readBackTime bounds the read of the entries that batches link to, so that a slow read does not delay answers without
// bound.
const readBackTime = 5 * time.Second

// readEntriesBack reads the entry before each batch from the store, with one call and while the append is being synced.
// The entries are durable, because all earlier appends of the stream have ended.
func (l *Ledgers) readEntriesBack(f appendInFlight) {
	places := make([]storage.Position, 0, f.sent)
	for _, p := range f.batches[:f.sent] {
		if size := p.batch.Expect.Size; size > 0 {
			places = append(places, storage.Position{Tenant: p.batch.Tenant, Index: size - 1})
		}
	}
	if len(places) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), readBackTime)
	defer cancel()
	found := l.store.Entries(ctx, places)
	for _, p := range f.batches[:f.sent] {
		if p.batch.Expect.Size > 0 {
			p.entryBefore, found = found[0], found[1:]
		}
	}
}

// A store may lose an acknowledged event, for example in a failover to an asynchronous standby. An anchor that lags by a
// second does not reveal the loss if the process dies within that second. With Options.AnchorFirst, the anchor is written
// before an event is acknowledged. This costs one more sync per append; appends that end together share it.

// errNotAnchored means that an append is durable but its anchor is not.
var errNotAnchored = errors.New("the anchor could not be written")

// anchorFirst writes the anchors of the durable batches of an append if Options.AnchorFirst is true. If that fails, the
// outcome of the batches counts as unknown, and a repair resolves it.
func (l *Ledgers) anchorFirst(f appendInFlight, results []error) []error {
	if l.importing || !l.anchorsFirst() {
		return results
	}
	notes := make([][]byte, 0, len(results))
	for i, p := range f.batches[:f.sent] {
		if results[i] == nil {
			p.takeNewKeys(l)
			notes = append(notes, p.state.Checkpoint())
		}
	}
	if len(notes) == 0 {
		return results
	}
	err := l.anchors.Put(notes...)
	for i, p := range f.batches[:f.sent] {
		switch {
		case results[i] != nil:
		case err != nil:
			results[i] = fmt.Errorf("%w: %w: %w", storage.ErrUnknown, errNotAnchored, err)
		default:
			p.anchored = true
		}
	}
	return results
}

// takeNewKeys sets the log keys of the state of a durable batch that changes them.
func (p *ledgerBatch) takeNewKeys(l *Ledgers) {
	if keys := l.findNewKeys(p); keys != nil {
		p.state.keys = keys
	}
}

// errBehind is the error of a batch whose submissions duplicate events of an append that failed.
var errBehind = errors.New("the append before it failed")

// landAppend publishes the durable batches of an append and answers their submissions. It blocks the ledgers of the other
// batches, and returns those that can be repaired now because nothing else of them is in flight.
func (l *Ledgers) landAppend(f appendInFlight, results []error) (repairs []*ledger) {
	// The batches of a ledger land in their order, even if it changed its stream in between.
	l.queue.awaitEarlierBatches(f.batches)
	for i, p := range f.batches {
		sent := i < f.sent
		if sent {
			p.err = results[i]
		} else if len(p.duplicates) > 0 && p.ledger.hasFailed() {
			p.err = errBehind
		}
		if errors.Is(p.err, storage.ErrBroken) {
			l.logger.Error("storage is broken: the process exits", "err", p.err)
			l.fatal(fmt.Errorf("append: %w", p.err))
		}
		switch {
		case p.err != nil: // nothing of the ledger is sequenced until a repair knows the outcome
			l.queue.blockLedger(p.ledger)
			p.ledger.keepFailed(p, p.err)
		case sent:
			l.publishBatch(p)
		default:
			p.answerDuplicates()
		}
	}
	l.queue.noteLanded(f)
	finished := 0
	for _, p := range f.batches {
		repair := p.last && p.ledger.hasFailed()
		if repair {
			repairs = append(repairs, p.ledger)
		}
		if p.err != nil {
			continue // busy until it is repaired
		}
		if p.changesConfig() && !repair {
			l.queue.unblockLedger(p.ledger, nil)
		}
		finished++
	}
	l.queue.noteFinished(finished)
	return repairs
}

// publishBatch publishes the state of a durable batch and answers its submissions.
func (l *Ledgers) publishBatch(p *ledgerBatch) {
	valid := l.verifyLink(p)
	if keys := l.findNewKeys(p); keys != nil {
		p.ledger.keys.Store(keys)
		p.state.keys = keys
	}
	l.takeClockChange(p)
	rekeyed := p.state.keys != p.ledger.published.Load().keys
	p.ledger.publishState(p.state)
	l.metrics.Published.Inc()
	if !l.importing && !p.anchored {
		l.anchors.Touch(p.ledger)
	}
	l.moves.Tell(p.batch.Tenant)
	if rekeyed {
		l.relisted.Tell(p.batch.Tenant)
	}
	p.releaseAllKeys()
	p.answerSent(valid && p.state.fault.Level == Healthy)
	p.answerDuplicates()
}

// verifyLink reports whether the entry that was read back is the one that the batch links to, and freezes the ledger if it
// is not or does not exist. An entry that could not be read in time proves nothing and counts as valid. The batch must be
// durable, so that the entry before it is in the store.
func (l *Ledgers) verifyLink(p *ledgerBatch) bool {
	size, err := p.batch.Expect.Size, p.entryBefore.Err
	if size == 0 {
		return true
	}
	before := event.Entry{Prev: p.entryBefore.Entry.Prev, Record: p.entryBefore.Entry.Record, Seq: uint64(size)}
	switch {
	case err == nil && before.Hash() == p.batch.Events[0].Entry.Prev:
		return true
	case err == nil || IsDamage(err):
		ctx, cancel := context.WithTimeout(context.Background(), readBackTime)
		defer cancel()
		l.recordFault(ctx, p.ledger, Frozen, fmt.Sprintf("the stored entry at %d is not the one that was linked to", size-1))
	default:
		l.logger.Warn("entry could not be read back", "origin", p.ledger.identity.Origin, "index", size-1, "err", err)
		return true
	}
	return false
}

// publishState makes s visible to readers. A known fault persists.
func (led *ledger) publishState(s *State) {
	led.publishMu.Lock()
	defer led.publishMu.Unlock()
	s.fault = led.published.Load().fault
	led.published.Store(s)
}

func (p *ledgerBatch) answerSent(chainValid bool) {
	first := 0
	for _, s := range p.sent {
		s.sendAnswer(answer{Outcome: Outcome{Receipts: p.makeReceipts(first, s, chainValid)}})
		first += len(s.Drafts)
	}
}

// answerDuplicates answers the submissions that duplicate events in flight, which are durable by now.
func (p *ledgerBatch) answerDuplicates() {
	for _, s := range p.duplicates {
		s.refuseWith(ErrDuplicate)
	}
}

func (p *ledgerBatch) releaseAllKeys() {
	p.ledger.takenKeysMu.Lock()
	defer p.ledger.takenKeysMu.Unlock()
	p.releaseKeys(p.claimedKeys)
}

func (p *ledgerBatch) changesConfig() bool {
	return len(p.subs) > 0 && p.subs[len(p.subs)-1].Reconfigures
}

// keepFailed keeps a batch for repair.
func (led *ledger) keepFailed(p *ledgerBatch, err error) {
	p.releaseAllKeys()
	led.failedMu.Lock()
	defer led.failedMu.Unlock()
	led.failed = append(led.failed, failedBatch{batch: p, err: err})
}

func (led *ledger) hasFailed() bool {
	led.failedMu.Lock()
	defer led.failedMu.Unlock()
	return len(led.failed) > 0
}
