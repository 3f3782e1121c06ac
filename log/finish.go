package log

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/storage"
)

// finishAppends is the one goroutine of a stream that awaits its appends, in their order.
// It publishes the durable batches and answers the submissions.
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

// awaitAppend returns the outcomes of the batches of an append, and reads the entries back that the batches link to.
func (l *Ledgers) awaitAppend(f appendInFlight) []error {
	if f.pending == nil {
		return nil
	}
	l.readEntriesBack(f)
	return l.anchorFirst(f, f.pending.Wait())
}

// readBackTime bounds the read of the entries that batches link to, because an answer must
// not wait for its chain_valid for ever.
const readBackTime = 5 * time.Second

// readEntriesBack reads the entry before each batch back from the store, all at once and while the append is being
// synced: they are durable, as every append of the stream before this one has ended.
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

// A store may lose an acknowledged event, for example in a fail-over to an asynchronous
// standby. An anchor that lags by a second does not show the loss when the process dies in
// that second. With Options.AnchorFirst the anchor is written before an event is
// acknowledged. It costs one more sync an append; appends that end together share the sync.

// errNotAnchored: an append is durable, and the anchor that has to come first is not.
var errNotAnchored = errors.New("the anchor could not be written")

// anchorFirst writes the anchors of the durable batches of an append, if Options.AnchorFirst says so. If the anchors
// can't be written, the outcome of the batches counts as unknown, and repairLedger resolves them.
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

// takeNewKeys gives the state of a durable batch the log keys that the batch brings.
func (p *ledgerBatch) takeNewKeys(l *Ledgers) {
	if keys := l.findNewKeys(p); keys != nil {
		p.state.keys = keys
	}
}

// errBehind: the batch waited for events of an append that did not land.
var errBehind = errors.New("the append before it failed")

// landAppend ends all batches of an append and returns the ledgers to be repaired now.
func (l *Ledgers) landAppend(f appendInFlight, results []error) (repairs []*ledger) {
	l.queue.awaitEarlierBatches(f.batches)
	for i, p := range f.batches {
		sent := i < f.sent
		if sent {
			p.err = results[i]
		}
		l.settleBatch(p, sent)
	}
	l.queue.noteLanded(f)
	ended := 0
	for _, p := range f.batches {
		repair := p.last && p.ledger.hasFailed()
		if repair {
			repairs = append(repairs, p.ledger)
		}
		if p.err != nil {
			continue // busy until the repair
		}
		if p.changesConfig() && !repair {
			l.queue.unblockLedger(p.ledger, nil)
		}
		ended++
	}
	l.queue.noteFinished(ended)
	return repairs
}

// settleBatch ends one batch: it is durable, has to be repaired, or has no events.
func (l *Ledgers) settleBatch(p *ledgerBatch, sent bool) {
	if errors.Is(p.err, storage.ErrBroken) {
		l.logger.Error("storage is broken, the process ends", "err", p.err)
		l.fatal(fmt.Errorf("append: %w", p.err))
	}
	if !sent && len(p.duplicates) > 0 && p.ledger.hasFailed() {
		p.err = errBehind
	}
	switch {
	case p.err != nil:
		l.queue.blockLedger(p.ledger)
		p.ledger.keepFailed(p, p.err)
	case sent:
		l.publishBatch(p)
	default:
		p.answerDuplicates()
	}
}

// publishBatch makes a durable batch visible and answers its submissions.
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

// verifyLink reports whether the entry that was read back is the one that the batch links to. The ledger is frozen if
// it is another one, or none. An entry that could not be read in time proves nothing, so it counts as valid. The batch
// must be durable, so that the entry before it is in the store.
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
		l.logger.Warn("entry was not read back", "origin", p.ledger.identity.Origin, "index", size-1, "err", err)
		return true
	}
	return false
}

// publishState makes a state the one that readers see. A known fault stays known.
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

// answerDuplicates answers the submissions that were duplicates of events in flight, which are durable by now.
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
