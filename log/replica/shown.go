package replica

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
)

// maxLooks bounds how many ledgers Shown reads from the store at a time. Strangers ask for tiles before their requests
// are admitted, and the tiles of a hundred thousand logs are in no cache.
const maxLooks = 8

// Shown returns a state of a ledger that was shown, and that within accepts by its size; nil if this process knows of
// none, or if too many are being read. Another process may own the ledger. The state is for parts of the tree that
// never change: other answers from it would be old.
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

// lookForShown reads a ledger as it was at its anchor; nil if too many are being read.
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
