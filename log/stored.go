package log

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// Reader reads ledgers as they lie in a store, for audits and copies. It loads no ledger
// and writes nothing but the first anchor of an empty ledger (Stored.ConfirmHead).
type Reader struct{ ledgers *Ledgers }

// NewReader returns a reader. It uses Store, Keyring, Anchors (may be nil), Logger and the
// cache sizes of o, which stay the caller's.
func NewReader(o Options) *Reader { return &Reader{newLedgers(o.withDefaults())} }

// Stored is one ledger as it lies in a store.
type Stored struct {
	ledgers  *Ledgers
	identity *Identity
	keys     *logKeys
}

// Open reads the identity and the log keys of a ledger: seal.ErrUnknownKey (wrapped) if these are sealed under another
// master key.
func (r *Reader) Open(ctx context.Context, t id.Tenant) (*Stored, error) {
	identity, keys, err := r.ledgers.readIdentity(ctx, t)
	if err != nil {
		return nil, err
	}
	return &Stored{ledgers: r.ledgers, identity: identity, keys: keys}, nil
}

// Identity returns the constant part of the ledger.
func (s *Stored) Identity() *Identity { return s.identity }

// RecordedFault returns the fault that is on record. IsDamage tells an error of the record from one of the store.
func (s *Stored) RecordedFault(ctx context.Context) (Fault, error) {
	return s.ledgers.readFault(ctx, s.identity.Tenant)
}

// LevelNow returns Succeeded in place of Frozen for a ledger that has a successor with an
// event, and the same level in all other cases.
func (s *Stored) LevelNow(ctx context.Context, recorded Level) (Level, error) {
	return s.ledgers.levelWithSuccessor(ctx, s.identity.Tenant, recorded)
}

// State reads the head, the tree and the counters, and checks that they fit together.
func (s *Stored) State(ctx context.Context) (*State, error) {
	return s.ledgers.readState(ctx, newLedger(s.identity, s.keys))
}

// MarkedState is State with the fault that is on record.
func (s *Stored) MarkedState(ctx context.Context) (*State, error) {
	state, err := s.State(ctx)
	if err == nil {
		state.fault, err = s.ledgers.storedFault(ctx, s.identity.Tenant)
	}
	return state, err
}

// Holds reports whether the stored ledger extends a checkpoint now.
func (s *Stored) Holds(ctx context.Context, shown tlog.Checkpoint) (bool, error) {
	now, err := s.State(ctx)
	if err != nil {
		return false, err
	}
	return extendsTree(ctx, s.ledgers, now, shown.Size, shown.Root)
}

// ConfirmHead compares the head of a state with its anchor, and sets the fault of the state
// if it does not extend that.
func (s *Stored) ConfirmHead(ctx context.Context, state *State) error {
	return s.ledgers.confirmHead(ctx, state)
}

// Extends reports whether the tree of a head extends a checkpoint.
func (s *Stored) Extends(ctx context.Context, head storage.Head, tree *tlog.Builder, shown tlog.Checkpoint) (bool, error) {
	state := &State{identity: s.identity, keys: s.keys, head: head, tree: tree}
	return extendsTree(ctx, s.ledgers, state, shown.Size, shown.Root)
}

// OpenCheckpoint reads a checkpoint that a key of the ledger has signed, which signs trees of that size.
func (s *Stored) OpenCheckpoint(note []byte) (tlog.Checkpoint, error) {
	return s.keys.openCheckpoint(note)
}
