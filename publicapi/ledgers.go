package publicapi

import (
	"context"
	"iter"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// Ledgers reads ledgers (package log). This surface never writes to them.
type Ledgers interface {
	States
	Shown
	Events
	Proofs
}

// States reads published states, and how far ledgers were reverified.
type States interface {
	State(ctx context.Context, t id.Tenant) (*log.State, error)
	Predecessor(ctx context.Context, s *log.State) (*log.State, error)
	Successor(ctx context.Context, s *log.State) (*log.State, error)
	Reverified(ctx context.Context, t id.Tenant) (log.Reverified, error)
}

// Shown reads the states of ledgers that other nodes own.
type Shown interface {
	// LastShown returns the state of a ledger at its anchor.
	LastShown(ctx context.Context, t id.Tenant) (*log.State, error)
}

// Events reads the events of a published state.
type Events interface {
	Find(ctx context.Context, s *log.State, event id.Event) (id.Index, error)
	Event(ctx context.Context, s *log.State, at id.Index, parts storage.Fields) (storage.Event, error)
	Events(ctx context.Context, s *log.State, begin, end id.Index, parts storage.Fields) iter.Seq2[storage.Event, error]
}

// Proofs reads tiles and verified proofs.
type Proofs interface {
	Tile(ctx context.Context, s *log.State, t tlog.Tile) ([]byte, error)
	Inclusion(ctx context.Context, s *log.State, at, size id.Index) (leaf, root id.Hash, proof []id.Hash, err error)
	InclusionOf(ctx context.Context, s *log.State, e storage.Event, size id.Index) ([]id.Hash, error)
	CheckpointAt(ctx context.Context, s *log.State, size id.Index) (tlog.Checkpoint, []byte, error)
	Consistency(ctx context.Context, s *log.State, from, to id.Index) (fromRoot, toRoot id.Hash, proof []id.Hash,
		err error)
}
