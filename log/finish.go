package log

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/storage"
)

// finish is the one goroutine of a stream that learns what became of each append,
// in their order, publishes what is durable and releases who waits for it.
func (l *Ledgers) finish(flights <-chan flight) {
	for f := range flights {
		results := l.wait(f)
		l.observe(f)
		l.queue.ended(f)
		for _, led := range l.land(f, results) {
			l.done.Go(func() {
				l.repairs <- struct{}{}
				defer func() { <-l.repairs }()
				l.repair(led)
			})
		}
	}
}

// wait returns what became of the batches, and reads back what they link to.
func (l *Ledgers) wait(f flight) []error {
	if f.pending == nil {
		return nil
	}
	l.readBack(f)
	return l.anchorFirst(f, f.pending.Wait())
}

// errBehind: the part only waited for events of an append that did not land.
var errBehind = errors.New("the append before it failed")

// land ends all parts of an append and returns the ledgers to be repaired now.
func (l *Ledgers) land(f flight, results []error) (repairs []*ledger) {
	l.queue.inTurn(f.parts)
	for i, p := range f.parts {
		sent := i < f.batches
		if sent {
			p.err = results[i]
		}
		l.settle(p, sent)
	}
	l.queue.landed(f)
	ended := 0
	for _, p := range f.parts {
		repair := p.last && p.ledger.hasFailed()
		if repair {
			repairs = append(repairs, p.ledger)
		}
		if p.err != nil {
			continue // busy until the repair
		}
		if p.reconfigures() && !repair {
			l.queue.unblock(p.ledger, nil)
		}
		ended++
	}
	l.queue.rested(ended)
	return repairs
}

// settle ends one part: durable, to be repaired, or without events at all.
func (l *Ledgers) settle(p *part, sent bool) {
	if errors.Is(p.err, storage.ErrBroken) {
		l.logger.Error("storage is broken, the process ends", "err", p.err)
		l.fatal(fmt.Errorf("append: %w", p.err))
	}
	if !sent && len(p.late) > 0 && p.ledger.hasFailed() {
		p.err = errBehind
	}
	switch {
	case p.err != nil:
		l.queue.block(p.ledger)
		p.ledger.fail(p, p.err)
	case sent:
		l.publish(p)
	default:
		p.answerLate()
	}
}

// publish makes a durable part visible and releases its waiters.
func (l *Ledgers) publish(p *part) {
	valid := l.linked(p)
	if keys := l.rekeyed(p); keys != nil {
		p.ledger.keys.Store(keys)
		p.state.keys = keys
	}
	l.corrected(p)
	rekeyed := p.state.keys != p.ledger.published.Load().keys
	p.ledger.publish(p.state)
	l.metrics.published.Inc()
	if !l.importing && !p.anchored {
		l.anchors.Touch(p.ledger)
	}
	l.moves.tell(p.batch.Tenant)
	if rekeyed {
		l.relisted.tell(p.batch.Tenant)
	}
	p.releaseNames()
	p.answer(valid && p.state.fault.Level == Healthy)
	p.answerLate()
}

// publish makes a state the one that readers see. What is known to be wrong
// stays known.
func (led *ledger) publish(s *State) {
	led.publishMu.Lock()
	defer led.publishMu.Unlock()
	s.fault = led.published.Load().fault
	led.published.Store(s)
}

// readBackTime bounds the read of what a flight's batches link to: an answer must not
// wait for ever for what it says of chain_valid.
const readBackTime = 5 * time.Second

// readBack reads the entry before each batch back from the store, all at once and
// while the append is being synced: they are durable, as every append of the stream
// before this one has ended.
func (l *Ledgers) readBack(f flight) {
	places := make([]storage.Position, 0, f.batches)
	for _, p := range f.parts[:f.batches] {
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
	for _, p := range f.parts[:f.batches] {
		if p.batch.Expect.Size > 0 {
			p.before, found = found[0], found[1:]
		}
	}
}

// linked reports whether the entry that was read back is the one that the batch
// links to. If it is another one, or none, the ledger is frozen; if it could not
// be read at the moment, nothing is known. It is asked of a batch that is durable,
// so that the entry before it was what the store has.
func (l *Ledgers) linked(p *part) bool {
	size, err := p.batch.Expect.Size, p.before.Err
	if size == 0 {
		return true
	}
	before := event.Entry{Prev: p.before.Entry.Prev, Record: p.before.Entry.Record, Seq: uint64(size)}
	switch {
	case err == nil && before.Hash() == p.batch.Events[0].Entry.Prev:
		return true
	case err == nil || isDamage(err):
		ctx, cancel := context.WithTimeout(context.Background(), readBackTime)
		defer cancel()
		l.mark(ctx, p.ledger, Frozen, fmt.Sprintf("the stored entry at %d is not the one that was linked to", size-1))
	default:
		l.logger.Error("entry was not read back", "origin", p.ledger.identity.Origin, "index", size-1, "err", err)
	}
	return false
}

func (p *part) answer(chainValid bool) {
	first := 0
	for _, s := range p.sent {
		s.end(answer{Outcome: Outcome{Receipts: p.receipts(first, s.Drafts, chainValid)}})
		first += len(s.Drafts)
	}
}

// answerLate answers those that were duplicates of what is durable by now.
func (p *part) answerLate() {
	for _, s := range p.late {
		s.refuse(ErrDuplicate)
	}
}

func (p *part) releaseNames() {
	p.ledger.namesMu.Lock()
	defer p.ledger.namesMu.Unlock()
	p.release(p.names)
}

func (p *part) reconfigures() bool {
	return len(p.subs) > 0 && p.subs[len(p.subs)-1].Reconfigures
}

// fail keeps a part for repair.
func (led *ledger) fail(p *part, err error) {
	p.releaseNames()
	led.failedMu.Lock()
	defer led.failedMu.Unlock()
	led.failed = append(led.failed, failedPart{part: p, err: err})
}

func (led *ledger) hasFailed() bool {
	led.failedMu.Lock()
	defer led.failedMu.Unlock()
	return len(led.failed) > 0
}
