package replica

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
)

// maxLooks bounds the ledgers that Shown reads from the store at a time. Unauthenticated clients request tiles before
// admission control, and the tiles of a hundred thousand logs do not fit in a cache.
const maxLooks = 8

// Shown returns a state of a ledger that was shown and whose size within accepts, or nil if this process knows none or if
// too many ledgers are being read. Another process may own the ledger. The state must only be used for parts of the tree
// that never change, because it may be out of date.
func (l *Ledgers) Shown(ctx context.Context, t id.Tenant, within func(id.Index) bool) (*log.State, error) {
	s, found := l.shown.Get(t)
	if found {
		if within(s.Size()) {
			return s, nil
		}
		if anchored, _ := l.options.Anchors.Size(s.Identity().Origin); !within(anchored) {
			return nil, nil
		}
	}
	s, err := l.lookForShown(ctx, t)
	if err != nil || s == nil || !within(s.Size()) {
		return nil, err
	}
	return s, nil
}

// lookForShown reads a ledger as of its anchor. It returns nil if too many are being read.
func (l *Ledgers) lookForShown(ctx context.Context, t id.Tenant) (*log.State, error) {
	select {
	case l.looks <- struct{}{}:
	default:
		return nil, nil
	}
	defer func() { <-l.looks }()
	s, err := l.LastShown(ctx, t)
	if err == nil {
		l.shown.Put(t, s)
	}
	return s, err
}
