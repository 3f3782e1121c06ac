package log

import (
	"context"
	"errors"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Records of a ledger in its own partition, under key "", that package audit reads.
const (
	KindReverified storage.Kind = "ledger_reverified" // how far it was re-verified; package audit writes it
	KindFault                   = kindFault           // see FaultLevel
)

// Reverified says how far a ledger was re-verified from the store itself.
type Reverified struct {
	To    id.Index   `json:"to"`    // the events [0, To) were found in order
	Root  id.Hash    `json:"root"`  // of the tree at To
	At    id.Instant `json:"at"`    // when To was reached
	Since id.Instant `json:"since"` // when the first event was last looked at
}

// Reverified returns how far the ledger was re-verified; the zero value when it never was.
func (l *Ledgers) Reverified(ctx context.Context, t id.Tenant) (Reverified, error) {
	var v Reverified
	err := l.readOwnRecord(ctx, t, KindReverified, &v)
	if errors.Is(err, storage.ErrNotFound) {
		return Reverified{}, nil
	}
	return v, storeError("read re-verification", err)
}
