package log

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// State is one published, durable state of a ledger. It is immutable and may be kept.
type State struct {
	ledger       *ledger // that published it; nil for a state that was read without loading the ledger
	identity     *Identity
	keys         *logKeys
	head         storage.Head
	tree         *tlog.Builder // read-only
	used         usage
	fault        Fault
	anchoredView *tlog.Checkpoint // the anchor, signed in place of the head if the stored ledger does not extend it; else nil

	signOnce sync.Once
	note     []byte
}

// usage is the number of counted events in the month of the latest entry.
type usage struct {
	month Month
	count uint64
}

// Identity is the constant part of a ledger.
type Identity struct {
	Tenant       id.Tenant
	Organization id.Organization
	Origin       id.Origin
	CreatedAt    id.Instant
	Predecessor  id.Tenant // the frozen ledger that this one succeeds, or 0

	carried usage // what the predecessor had counted in the month of the succession
}

// Carried returns how many events the predecessor had counted in a month, or 0 if there is no predecessor.
func (i *Identity) Carried() (Month, uint64) { return i.carried.month, i.carried.count }

// KeyOwner returns the owner of the keys that are sealed for the ledger or its organization.
func (i *Identity) KeyOwner() seal.Owner {
	return seal.Owner{Origin: i.Origin, Organization: i.Organization}
}

// Identity returns the constant part of the ledger.
func (s *State) Identity() *Identity { return s.identity }

// Size returns the number of events.
func (s *State) Size() id.Index { return s.head.Size }

// Head returns the stored head.
func (s *State) Head() storage.Head { return s.head }

// Root returns the tree's root.
func (s *State) Root() id.Hash { return s.head.Root }

// Last returns the event hash of the latest entry, or the genesis value if the ledger is empty.
func (s *State) Last() id.Hash { return s.head.Last }

// LastReceived returns received_at of the latest entry, or 0 if the ledger is empty.
func (s *State) LastReceived() id.Instant { return s.head.LastReceived }

// ConfigVersion returns the version of the configuration that events are judged by. Values that a caller reads after it
// has this state are never older than the version, so caches may use (tenant, config version) as their key.
func (s *State) ConfigVersion() uint64 { return s.head.ConfigVersion }

// Used returns the number of counted events in the month of i so far.
func (s *State) Used(i id.Instant) uint64 {
	if s.used.month != MonthOf(i) {
		return 0
	}
	return s.used.count
}

// Fault returns the known fault of the ledger, or the zero value.
func (s *State) Fault() Fault { return s.fault }

// VerifierKey returns the log key. While two keys sign, it returns the older one (see LogKeys).
func (s *State) VerifierKey() tlog.VerifierKey { return s.keys.primaryKey(s.Shown().Size) }

// VerifierKeyOf returns the key to name next to a checkpoint of the given size: VerifierKey if it signs that checkpoint,
// and otherwise the VerifierKey of that time.
func (s *State) VerifierKeyOf(size id.Index) tlog.VerifierKey {
	now := s.VerifierKey()
	if slices.ContainsFunc(s.keys.all, func(k heldKey) bool { return k.Verifier == now && k.Signs(size) }) {
		return now
	}
	return s.keys.primaryKey(size)
}

// SignersOf returns the keys that sign a checkpoint of the given size, oldest first. There are two during a rotation.
func (s *State) SignersOf(size id.Index) (signers []tlog.VerifierKey) {
	for _, k := range s.keys.all {
		if k.Signs(size) {
			signers = append(signers, k.Verifier)
		}
	}
	return signers
}

// Detached reports whether the ledger is frozen and shows another tree than the stored one, because the head does not
// extend the anchor, or because neither the head nor the tree of the anchor can be read. The stored entries are then not
// covered by Checkpoint and can't be proved.
func (s *State) Detached() bool { return s.anchoredView != nil }

// Shown returns the checkpoint that Checkpoint signs: size and root of the head, or of the anchor if the state is
// detached, because signing the head would sign a fork.
func (s *State) Shown() tlog.Checkpoint {
	if s.Detached() {
		return *s.anchoredView
	}
	return tlog.Checkpoint{Origin: s.identity.Origin, Size: s.head.Size, Root: s.head.Root}
}

// Checkpoint returns the signed note over Shown. The note depends only on Shown and the log keys, and is signed at first
// use. Callers must not modify it.
func (s *State) Checkpoint() []byte {
	s.signOnce.Do(func() {
		note, err := s.keys.signCheckpoint(s.Shown())
		if err != nil { // a foreign origin or a size beyond MaxSize: no ledger has either
			panic(fmt.Sprintf("sign checkpoint of %s: %v", s.identity.Origin, err))
		}
		s.note = note
	})
	return s.note
}

// SignReceipt returns the COSE receipt of the entry at an index in the tree of c, signed by VerifierKeyOf(c.Size). c must
// be a checkpoint of this ledger that may be shown, and the proof must be checked.
func (s *State) SignReceipt(c tlog.Checkpoint, at id.Index, proof []id.Hash) (tlog.Receipt, error) {
	return s.keys.signReceipt(s.VerifierKeyOf(c.Size), c, at, proof)
}

// OpenCheckpoint opens a checkpoint of the ledger that is signed by the log key, or one of the keys, of its size.
func (s *State) OpenCheckpoint(note []byte) (tlog.Checkpoint, error) {
	return s.keys.openCheckpoint(note)
}

// copyWithFault returns the same state with a fault.
func (s *State) copyWithFault(f Fault) *State {
	return &State{ledger: s.ledger, identity: s.identity, keys: s.keys, head: s.head, tree: s.tree, used: s.used, fault: f, anchoredView: s.anchoredView}
}

// Provable returns fault.Unavailable with code frozen if the state is detached, so that no entry can be proved under
// Checkpoint.
func (s *State) Provable() error {
	if s.Detached() {
		return frozenError()
	}
	return nil
}

func frozenError() error {
	return &fault.Error{Kind: fault.Unavailable, Code: "frozen", Message: "The organization's ledger is frozen"}
}

// Trusted returns nil if the stored records of the organization are in force. Otherwise the ledger accepts no events, and
// Trusted returns fault.Unavailable with code frozen, read_only, held, importing or moved.
//
// Callers must check it before they decide anything by records of the organization (policy, keys, approvals) or show that
// these are in force. For example, if the store was rolled back to before a key was revoked, its records contain an
// active key, and only the anchor shows that something is missing.
func (s *State) Trusted() error {
	switch s.fault.Level {
	case Frozen:
		return frozenError()
	case Importing:
		return &fault.Error{Kind: fault.Unavailable, Code: "importing", Message: "The organization is being imported"}
	case Moved:
		return &fault.Error{Kind: fault.Unavailable, Code: "moved", Message: "The organization was moved to another place"}
	case Held:
		return &fault.Error{Kind: fault.Unavailable, Code: "held", Message: "The organization is held, because its records contradict its log"}
	case ReadOnly:
		return &fault.Error{Kind: fault.Unavailable, Code: "read_only", Message: "The organization's ledger is read-only until its checkpoint is adopted"}
	}
	return nil
}

// Month is year*12 + month-1 in UTC. 0 is no month.
type Month int

// MonthOf returns the month of i.
func MonthOf(i id.Instant) Month {
	t := i.Time()
	return Month(t.Year()*12 + int(t.Month()) - 1)
}

// CounterName returns the name of the month's counter of events.
func (m Month) CounterName() string {
	name := []byte("events/0000-00")
	digits := func(end, n int) {
		for ; n > 0; n /= 10 {
			name[end] = byte('0' + n%10)
			end--
		}
	}
	digits(10, int(m)/12)
	digits(13, int(m)%12+1)
	return string(name)
}

// Level is the consequence of a fault for its ledger.
type Level string

const (
	Healthy  Level = ""          // no fault is known
	Suspect  Level = "suspect"   // an envelope or record is damaged: chain_valid is false
	ReadOnly Level = "read_only" // no anchor confirms the head: read-only until adopted
	Held     Level = "held"      // the organization's records contradict the log: no events until an operator decides
	// These are no faults, but reasons to accept no events: an import that has not ended, and a ledger that continues
	// in another store.
	Importing Level = "importing"
	Moved     Level = "moved"
	Frozen    Level = "frozen" // chain, tree or head is damaged or forked, permanently
	// Succeeded is reported for a frozen ledger whose successor has an event. The ledger stays frozen, and no State has
	// this level.
	Succeeded Level = "succeeded"
)

// isWorseThan reports whether v has more consequences for a ledger than other.
func (v Level) isWorseThan(other Level) bool {
	rank := map[Level]int{Healthy: 0, Suspect: 1, ReadOnly: 2, Held: 3, Importing: 4, Moved: 5, Frozen: 6}
	return rank[v] > rank[other]
}

// Fault is a known fault of a ledger.
type Fault struct {
	Level  Level      `json:"level"`
	Reason string     `json:"reason"`
	At     id.Instant `json:"at"`
}

// worseOf returns the worse of two faults, f when they are equal.
func (f Fault) worseOf(other Fault) Fault {
	if other.Level.isWorseThan(f.Level) {
		return other
	}
	return f
}

// IsDamage reports whether a read failed because stored values are damaged or missing, and not because the store could
// not be reached.
func IsDamage(err error) bool {
	return errors.Is(err, ErrInconsistent) || errors.Is(err, storage.ErrCorrupt) || errors.Is(err, storage.ErrNotFound)
}

// Freeze stops a ledger permanently for a reason outside the store, for example because the head does not extend a
// checkpoint that was shown. The reason is logged and stored with the fault; it is not public.
func (l *Ledgers) Freeze(ctx context.Context, t id.Tenant, reason string) error {
	return l.MarkFault(ctx, t, Frozen, reason)
}

// MarkFault permanently records a fault of a ledger unless a worse one is on record. The reason is treated as in Freeze.
func (l *Ledgers) MarkFault(ctx context.Context, t id.Tenant, level Level, reason string) error {
	led, err := l.residentLedger(ctx, t)
	if err != nil {
		return err
	}
	l.recordFault(context.WithoutCancel(ctx), led, level, reason)
	return nil
}

// recordFault permanently records a fault and publishes the state with it. A worse fault that is on record stays.
func (l *Ledgers) recordFault(ctx context.Context, led *ledger, level Level, reason string) {
	f := Fault{Level: level, Reason: reason, At: id.InstantOf(l.clock())}
	l.logger.Error("ledger fault found", "origin", led.identity.Origin, "level", level, "reason", reason)
	l.metrics.Faults.WithLabelValues(string(level)).Inc()
	led.markMu.Lock()
	defer led.markMu.Unlock()
	if err := l.storeFault(ctx, led.identity.Tenant, f); err != nil {
		l.logger.Error("ledger fault not stored", "origin", led.identity.Origin, "err", err)
	}
	led.publishMu.Lock()
	defer led.publishMu.Unlock()
	if s := led.published.Load(); f.Level.isWorseThan(s.fault.Level) {
		led.published.Store(s.copyWithFault(f))
	}
	l.relisted.Tell(led.identity.Tenant)
}

func (l *Ledgers) storeFault(ctx context.Context, t id.Tenant, f Fault) error {
	stored, err := l.storedFault(ctx, t)
	if err != nil || !f.Level.isWorseThan(stored.Level) {
		return err
	}
	value, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return l.store.Write(ctx, t, []storage.Change{{Kind: kindFault, Value: value, If: storage.AnyVersion}})
}

// storedFault returns the fault that is on record. A record that can't be read counts as the worst fault, because a
// healthy ledger has no record.
func (l *Ledgers) storedFault(ctx context.Context, t id.Tenant) (Fault, error) {
	f, err := l.readFault(ctx, t)
	if IsDamage(err) {
		return Fault{Level: Frozen, Reason: "the fault record can't be read", At: id.InstantOf(l.clock())}, nil
	}
	return f, storeError("read fault record", err)
}

func (l *Ledgers) readFault(ctx context.Context, t id.Tenant) (f Fault, err error) {
	err = l.readOwnRecord(ctx, t, kindFault, &f)
	if errors.Is(err, storage.ErrNotFound) {
		return Fault{}, nil
	}
	if err == nil && !f.Level.isWorseThan(Healthy) {
		err = fmt.Errorf("%w: level %q", storage.ErrCorrupt, f.Level)
	}
	return f, err
}

// readOwnRecord reads a record that this package keeps about a ledger. It returns storage.ErrCorrupt if it is not JSON.
func (l *Ledgers) readOwnRecord(ctx context.Context, t id.Tenant, kind storage.Kind, into any) error {
	r, err := l.store.Get(ctx, t, kind, "")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(r.Value, into); err != nil {
		return fmt.Errorf("%w: %s: %w", storage.ErrCorrupt, kind, err)
	}
	return nil
}

// IsHeld reports whether a ledger accepts no events because the records of its organization contradict it.
func IsHeld(ctx context.Context, store Store, t id.Tenant) (bool, error) {
	f, err := (&Ledgers{store: store}).readFault(ctx, t)
	if err != nil {
		return false, fmt.Errorf("read fault record: %w", err)
	}
	return f.Level == Held, nil
}

// Release ends the hold of a ledger in a store that has no writer. Another fault stays. If the contradiction persists, the
// next comparison holds the ledger again.
func Release(ctx context.Context, store Store, t id.Tenant) error {
	held, err := IsHeld(ctx, store, t)
	if err != nil || !held {
		return err
	}
	return store.Write(ctx, t, []storage.Change{{Kind: kindFault, If: storage.AnyVersion}})
}

// Kinds of records in a ledger's partition, under key "", that package audit uses.
const (
	KindReverified storage.Kind = "ledger_reverified" // Reverified; written by package audit
	KindFault                   = kindFault           // see FaultLevel
)

// Reverified is how far a ledger was re-verified from the store.
type Reverified struct {
	To    id.Index   `json:"to"`    // the events [0, To) were verified
	Root  id.Hash    `json:"root"`  // of the tree at To
	At    id.Instant `json:"at"`    // when To was reached
	Since id.Instant `json:"since"` // when the first event was last verified
}

// Reverified returns how far the ledger was re-verified, or the zero value if it never was.
func (l *Ledgers) Reverified(ctx context.Context, t id.Tenant) (Reverified, error) {
	var v Reverified
	err := l.readOwnRecord(ctx, t, KindReverified, &v)
	if errors.Is(err, storage.ErrNotFound) {
		return Reverified{}, nil
	}
	return v, storeError("read re-verification", err)
}
