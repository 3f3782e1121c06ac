package log

import (
	"context"
	"errors"

	"github.com/agentledger/agentledger/log/takeover"
	"github.com/agentledger/agentledger/storage"
)

// ErrNotOwner is returned (wrapped) for a ledger that the process does not own (Options.Owned). Nothing was done.
var ErrNotOwner = takeover.ErrNotOwner

// takeOverAndRead is readState of a ledger that this process alone may write from then on. A ledger that takes no
// events by its fault on record is only read, because nobody writes to it.
func (l *Ledgers) takeOverAndRead(ctx context.Context, led *ledger, known Fault) (*State, error) {
	if l.fences == nil || l.readOnly || l.importing || !Importing.isWorseThan(known.Level) {
		return l.readState(ctx, led)
	}
	head, err := l.fences.TakeOver(ctx, led.identity.Tenant)
	if err != nil {
		return nil, err
	}
	return l.readStateAt(ctx, led, head)
}

// giveUpLedger answers all submissions of a lost ledger, and drops it. An append with an unknown outcome is looked up
// first. cause is why the store can't be asked, if that is known.
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

// givingUp is the end of a lost ledger, whose failed batches are answered in their order.
type givingUp struct {
	ledgers *Ledgers
	head    storage.Head // as it is stored
	err     error        // why it is not known
	open    bool         // an append whose outcome is unknown may still take effect
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
