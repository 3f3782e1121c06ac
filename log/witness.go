package log

import (
	"context"
	"sync"

	"github.com/agentledger/agentledger/id"
)

// Witness knows what others were shown of the ledgers.
type Witness interface {
	// Confirm returns when others were asked about the head of s, or after a bound. If
	// one of them knows of a tree that the head does not extend, it has frozen the ledger
	// by then.
	Confirm(ctx context.Context, s *State)
}

// confirmed asks the witness before the first event that a ledger takes since it was
// read from the store, and returns the state as it is then. Those who come meanwhile
// wait too. Anchors that were lost or brought back with the store are found out so.
func (l *Ledgers) confirmed(ctx context.Context, led *ledger) *State {
	s := led.published.Load()
	if l.witness == nil || s.Trusted() != nil || s.Size() == 0 {
		return s
	}
	led.witnessed.Load().Do(func() { l.witness.Confirm(context.WithoutCancel(ctx), led.published.Load()) })
	return led.published.Load()
}

// unwitnessed says that a ledger was read from the store.
func (led *ledger) unwitnessed() { led.witnessed.Store(new(sync.Once)) }

// Anchored reports whether a ledger has an anchor, without reading more of it than its
// identity. One without an anchor takes no events (ReadOnly), unless it is empty.
func (l *Ledgers) Anchored(ctx context.Context, t id.Tenant) (bool, error) {
	var stored identityRecord
	if err := l.ownRecord(ctx, t, kindIdentity, &stored); err != nil {
		return false, storeError("read identity", err)
	}
	_, anchored := l.anchors.Find(stored.Origin)
	return anchored, nil
}
