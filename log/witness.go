package log

import (
	"context"
	"sync"

	"github.com/agentledger/agentledger/id"
)

// Witness knows the checkpoints of the ledgers that other parties were shown.
type Witness interface {
	// Confirm returns when other parties were asked about the head of s, or after a bound. The ledger is frozen by
	// then if one party knows a tree that the head does not extend.
	Confirm(ctx context.Context, s *State)
}

// confirmByWitness asks the witness before the first event that a ledger takes after it
// was read from the store, and returns the state after that. Concurrent callers wait too.
// So anchors that were lost, or rolled back together with the store, are found out.
func (l *Ledgers) confirmByWitness(ctx context.Context, led *ledger) *State {
	s := led.published.Load()
	if l.witness == nil || s.Trusted() != nil || s.Size() == 0 {
		return s
	}
	led.witnessed.Load().Do(func() { l.witness.Confirm(context.WithoutCancel(ctx), led.published.Load()) })
	return led.published.Load()
}

// forgetWitness says that a ledger was read from the store.
func (led *ledger) forgetWitness() { led.witnessed.Store(new(sync.Once)) }

// Anchored reports whether a ledger has an anchor that is known to be its latest. It reads the identity of the ledger
// alone. A ledger without one takes no events (ReadOnly), unless it is empty.
func (l *Ledgers) Anchored(ctx context.Context, t id.Tenant) (bool, error) {
	var stored identityRecord
	if err := l.readOwnRecord(ctx, t, kindIdentity, &stored); err != nil {
		return false, storeError("read identity", err)
	}
	_, anchored := l.anchors.Find(stored.Origin)
	return anchored && !l.anchors.Doubtful(stored.Origin), nil
}
