package log

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// State returns the published state of a ledger, loading it if necessary. It returns fault.NotFound for an unknown tenant.
func (l *Ledgers) State(ctx context.Context, t id.Tenant) (*State, error) {
	s, _, err := l.Newest(ctx, t)
	return s, err
}

// Newest is like State. late reports whether an append has been in flight for so long that replicas may have shown its
// result to readers already (package replica).
func (l *Ledgers) Newest(ctx context.Context, t id.Tenant) (s *State, late bool, err error) {
	led, err := l.residentLedger(ctx, t)
	if err != nil {
		return nil, false, err
	}
	late = led.outstanding.IsLate(l.queue.elapsed)
	return led.published.Load(), late, nil
}

// Find returns the index of an event in s. It returns fault.NotFound if s does not contain the event.
func (l *Ledgers) Find(ctx context.Context, s *State, event id.Event) (id.Index, error) {
	at, err := l.store.Lookup(ctx, s.identity.Tenant, []storage.DedupKey{{Text: string(event)}})
	if err != nil {
		return 0, storeError("find event", err)
	}
	if at[0] >= s.Size() {
		return 0, fault.New(fault.NotFound, "Not found")
	}
	return at[0], nil
}

// Locate returns the indices of events in s, with storage.NoIndex for events that s does not contain.
func (l *Ledgers) Locate(ctx context.Context, s *State, events []id.Event) ([]id.Index, error) {
	names := make([]storage.DedupKey, len(events))
	for i, e := range events {
		names[i] = storage.DedupKey{Text: string(e)}
	}
	at, err := l.store.Lookup(ctx, s.identity.Tenant, names)
	if err != nil {
		return nil, storeError("locate events", err)
	}
	for i := range at {
		if at[i] >= s.Size() {
			at[i] = storage.NoIndex
		}
	}
	return at, nil
}

// Hashes returns the event hashes at indices of s, in any order. It returns fault.NotFound if an index is not below the
// size of s.
func (l *Ledgers) Hashes(ctx context.Context, s *State, at []id.Index) ([]id.Hash, error) {
	places := make([]storage.Position, len(at))
	for i, index := range at {
		if index >= s.Size() {
			return nil, fault.New(fault.NotFound, "Not found")
		}
		places[i] = storage.Position{Tenant: s.identity.Tenant, Index: index}
	}
	hashes := make([]id.Hash, len(at))
	for i, found := range l.store.Entries(ctx, places) {
		if errors.Is(found.Err, storage.ErrNotFound) {
			found.Err = fmt.Errorf("%w: event %d is missing", storage.ErrCorrupt, at[i])
		}
		if found.Err != nil {
			return nil, storeError("read event hashes", found.Err)
		}
		hashes[i] = event.Entry{Prev: found.Entry.Prev, Record: found.Entry.Record, Seq: at[i].Sequence()}.Hash()
	}
	return hashes, nil
}

// Events yields the events [begin, end) of s. It stops at the size of s.
func (l *Ledgers) Events(ctx context.Context, s *State, begin, end id.Index, parts storage.Fields) iter.Seq2[storage.Event, error] {
	return func(yield func(storage.Event, error) bool) {
		for e, err := range l.store.Events(ctx, s.identity.Tenant, begin, min(end, s.Size()), parts) {
			if !yield(e, storeError("read events", err)) {
				return
			}
		}
	}
}

// Event returns one event of s. It returns fault.NotFound if the index is not below the size of s.
func (l *Ledgers) Event(ctx context.Context, s *State, at id.Index, parts storage.Fields) (storage.Event, error) {
	if at >= s.Size() {
		return storage.Event{}, fault.New(fault.NotFound, "Not found")
	}
	e, err := ReadEvent(ctx, l.store, s.identity.Tenant, at, parts)
	if errors.Is(err, storage.ErrNotFound) {
		err = fmt.Errorf("%w: event %d is missing", storage.ErrCorrupt, at)
	}
	return e, storeError("read event", err)
}

// eventsAtOnce bounds the events that EventsAt holds in memory.
const eventsAtOnce = 64

// EventsAt yields the events of s at distinct indices, in the order of at. It yields fault.NotFound if an index is not below
// the size of s.
func (l *Ledgers) EventsAt(
	ctx context.Context, s *State, at []id.Index, parts storage.Fields,
) iter.Seq2[storage.Event, error] {
	return func(yield func(storage.Event, error) bool) {
		for chunk := range slices.Chunk(at, eventsAtOnce) {
			found, err := l.readEventsAt(ctx, s, chunk, parts)
			if err != nil {
				yield(storage.Event{}, err)
				return
			}
			for _, index := range chunk {
				if !yield(found[index], nil) {
					return
				}
			}
		}
	}
}

// readEventsAt reads the events at indices in any order.
func (l *Ledgers) readEventsAt(
	ctx context.Context, s *State, at []id.Index, parts storage.Fields,
) (map[id.Index]storage.Event, error) {
	rising := slices.Sorted(slices.Values(at))
	if len(rising) > 0 && rising[len(rising)-1] >= s.Size() {
		return nil, fault.New(fault.NotFound, "Not found")
	}
	events, err := l.store.EventsAt(ctx, s.identity.Tenant, rising, parts)
	if err == nil && len(events) != len(rising) {
		err = fmt.Errorf("%w: %d events are missing", storage.ErrCorrupt, len(rising)-len(events))
	}
	if err != nil {
		return nil, storeError("read events", err)
	}
	found := make(map[id.Index]storage.Event, len(events))
	for _, e := range events {
		found[e.Index] = e
	}
	return found, nil
}

// durableTree returns the tree of s for the tile reader.
func (s *State) durableTree() tileTree {
	return tileTree{Tenant: s.identity.Tenant, Size: s.Size(), End: s.tree}
}

// Tile returns the hashes of a tile, 32 bytes each. The caller must not modify them. It returns fault.NotFound if the tree
// of s has no such tile of that width.
func (l *Ledgers) Tile(ctx context.Context, s *State, t tlog.Tile) ([]byte, error) {
	b, err := l.tiles.Hashes(ctx, s.durableTree(), t)
	return b, storeError("read tile", err)
}

// Root returns the root of the tree of s when it had size leaves.
func (l *Ledgers) Root(ctx context.Context, s *State, size id.Index) (id.Hash, error) {
	return readRootAt(ctx, l.tiles.Prover(s.durableTree()), s, size)
}

// CheckpointAt returns the checkpoint of the tree of s when it had size leaves, and its note, signed by the log keys of that
// size. size must be at most s.Size(), and the state must be provable.
func (l *Ledgers) CheckpointAt(ctx context.Context, s *State, size id.Index) (tlog.Checkpoint, []byte, error) {
	root, err := l.Root(ctx, s, size)
	if err != nil {
		return tlog.Checkpoint{}, nil, err
	}
	c := tlog.Checkpoint{Origin: s.identity.Origin, Size: size, Root: root}
	note, err := s.keys.signCheckpoint(c)
	return c, note, err
}

func readRootAt(ctx context.Context, p *tlog.Prover, s *State, size id.Index) (id.Hash, error) {
	if size == s.Size() {
		return s.Root(), nil
	}
	root, err := p.Root(ctx, size)
	return root, storeError("read root", err)
}

// Inclusion returns the leaf at an index, the root of the tree of s when it had size leaves, and the proof that the tree
// includes the leaf, for at < size <= s.Size(). The proof is verified before it is returned.
func (l *Ledgers) Inclusion(ctx context.Context, s *State, at, size id.Index) (leaf, root id.Hash, proof []id.Hash, err error) {
	ctx, proving := l.tracer.StartSpan(ctx, "inclusion proof")
	defer proving.End()
	p := l.tiles.Prover(s.durableTree())
	if root, err = readRootAt(ctx, p, s, size); err != nil {
		return leaf, root, nil, err
	}
	if leaf, err = p.Leaf(ctx, at, size); err != nil {
		return leaf, root, nil, storeError("read inclusion proof", err)
	}
	if proof, err = p.Inclusion(ctx, at, size); err != nil {
		return leaf, root, nil, storeError("read inclusion proof", err)
	}
	if err := tlog.CheckInclusion(at, size, leaf, proof, root); err != nil {
		return leaf, root, nil, l.refuseBadProof(s, "inclusion", err)
	}
	return leaf, root, proof, nil
}

// InclusionOf returns the proof that the event e, as read from the store, is in the tree of s when it had size leaves, for
// e.Index < size <= s.Size(). It returns fault.Internal if the entry is not the leaf in the tree or the proof is invalid.
func (l *Ledgers) InclusionOf(ctx context.Context, s *State, e storage.Event, size id.Index) ([]id.Hash, error) {
	leaf, _, proof, err := l.Inclusion(ctx, s, e.Index, size)
	if err != nil {
		return nil, err
	}
	if EntryOf(e).Hash() != leaf {
		return nil, l.refuseBadProof(s, "inclusion", errors.New("the entry is not the leaf"))
	}
	return proof, nil
}

// Consistency returns the proof that the tree of s at size to extends the tree at size from, and both roots, for from <= to
// <= s.Size(). The proof is verified before it is returned.
func (l *Ledgers) Consistency(ctx context.Context, s *State, from, to id.Index) (fromRoot, toRoot id.Hash, proof []id.Hash, err error) {
	ctx, proving := l.tracer.StartSpan(ctx, "consistency proof")
	defer proving.End()
	p := l.tiles.Prover(s.durableTree())
	if fromRoot, err = readRootAt(ctx, p, s, from); err != nil {
		return fromRoot, toRoot, nil, err
	}
	if toRoot, err = readRootAt(ctx, p, s, to); err != nil {
		return fromRoot, toRoot, nil, err
	}
	if proof, err = p.Consistency(ctx, from, to); err != nil {
		return fromRoot, toRoot, nil, storeError("read consistency proof", err)
	}
	if err := tlog.CheckConsistency(from, to, fromRoot, toRoot, proof); err != nil {
		return fromRoot, toRoot, nil, l.refuseBadProof(s, "consistency", err)
	}
	return fromRoot, toRoot, proof, nil
}

func (l *Ledgers) refuseBadProof(s *State, kind string, err error) error {
	l.metrics.BadProofs.Inc()
	l.logger.Error("proof is invalid", "origin", s.identity.Origin, "proof", kind, "err", err)
	return fault.Wrap(fault.Internal, "Internal error", fmt.Errorf("%s proof: %w", kind, err))
}

// Reader reads ledgers directly from a store, for audits and copies. It neither loads ledgers nor takes them over, and
// writes nothing except the first anchor of an empty ledger (Stored.ConfirmHead).
type Reader struct{ ledgers *Ledgers }

// NewReader returns a reader. It uses Store, Keyring, Anchors (may be nil), Logger and the cache sizes of o, and owns none
// of them.
func NewReader(o Options) *Reader { return &Reader{newLedgers(o.withDefaults())} }

// Stored is one ledger in a store.
type Stored struct {
	ledgers  *Ledgers
	identity *Identity
	keys     *logKeys
}

// Open reads the identity and the log keys of a ledger. Its error wraps seal.ErrUnknownKey if the keys are sealed with
// another master key.
func (r *Reader) Open(ctx context.Context, t id.Tenant) (*Stored, error) {
	identity, keys, err := r.ledgers.readIdentity(ctx, t)
	if err != nil {
		return nil, err
	}
	return &Stored{ledgers: r.ledgers, identity: identity, keys: keys}, nil
}

// Identity returns the constant part of the ledger.
func (s *Stored) Identity() *Identity { return s.identity }

// RecordedFault returns the fault that is on record. IsDamage reports whether an error is about the record.
func (s *Stored) RecordedFault(ctx context.Context) (Fault, error) {
	return s.ledgers.readFault(ctx, s.identity.Tenant)
}

// LevelNow returns Succeeded if the recorded level is Frozen and the ledger has a successor with an event. Otherwise it
// returns the recorded level.
func (s *Stored) LevelNow(ctx context.Context, recorded Level) (Level, error) {
	return s.ledgers.levelWithSuccessor(ctx, s.identity.Tenant, recorded)
}

// State reads the head, the tree and the counters, and checks that they fit together.
func (s *Stored) State(ctx context.Context) (*State, error) {
	return s.ledgers.readState(ctx, newLedger(s.identity, s.keys))
}

// MarkedState is like State and includes the fault that is on record.
func (s *Stored) MarkedState(ctx context.Context) (*State, error) {
	state, err := s.State(ctx)
	if err == nil {
		state.fault, err = s.ledgers.storedFault(ctx, s.identity.Tenant)
	}
	return state, err
}

// Holds reports whether the stored ledger extends a checkpoint.
func (s *Stored) Holds(ctx context.Context, shown tlog.Checkpoint) (bool, error) {
	now, err := s.State(ctx)
	if err != nil {
		return false, err
	}
	return extendsTree(ctx, s.ledgers, now, shown.Size, shown.Root)
}

// ConfirmHead sets the fault of a state if its head does not extend its anchor.
func (s *Stored) ConfirmHead(ctx context.Context, state *State) error {
	return s.ledgers.confirmHead(ctx, state)
}

// Extends reports whether a head and its tree extend a checkpoint.
func (s *Stored) Extends(ctx context.Context, head storage.Head, tree *tlog.Builder, shown tlog.Checkpoint) (bool, error) {
	state := &State{identity: s.identity, keys: s.keys, head: head, tree: tree}
	return extendsTree(ctx, s.ledgers, state, shown.Size, shown.Root)
}

// OpenCheckpoint opens a checkpoint of the ledger that is signed by the log key, or one of the keys, of its size.
func (s *Stored) OpenCheckpoint(note []byte) (tlog.Checkpoint, error) {
	return s.keys.openCheckpoint(note)
}
