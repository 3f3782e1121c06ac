package log

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// A frozen ledger is never resumed. Instead it gets a successor: another ledger of the same organization with its own tenant
// handle, origin and log key, whose first event names the predecessor. The successor's identity contains the predecessor,
// and a record of the frozen ledger contains the successor.

// kindSuccessor is the kind of the record, under key "" in a frozen ledger's partition, that names the successor.
const kindSuccessor storage.Kind = "ledger_successor"

type successorRecord struct {
	Tenant id.Tenant `json:"tenant"`
}

// predecessorRecord is the part of a successor's identity that describes the frozen ledger.
type predecessorRecord struct {
	Tenant  id.Tenant `json:"tenant"`
	Month   Month     `json:"month"`   // of the succession
	Counted uint64    `json:"counted"` // counted events of that month
}

// initialCounters returns the counters of a new ledger. A successor continues the month's count of its predecessor.
func (i *Identity) initialCounters() []storage.Counter {
	if i.carried.count == 0 {
		return nil
	}
	return []storage.Counter{{Name: i.carried.month.CounterName(), Value: i.carried.count}}
}

// OfLedger reports whether records of a kind describe one ledger, so that they must not be copied to its successor.
func OfLedger(kind storage.Kind) bool {
	return kind == kindIdentity || kind == kindFault || kind == KindReverified || kind == kindSuccessor
}

// Succeed returns the successor of the frozen ledger of s, and creates an empty one if there is none. The fault is stored,
// so that the ledger stays frozen even if its store changes. It returns fault.Conflict if the ledger is not frozen, or if
// it had a successor that is not in this store.
func (l *Ledgers) Succeed(ctx context.Context, s *State) (*State, error) {
	if s.fault.Level != Frozen {
		return nil, fault.New(fault.Conflict, "The ledger is not frozen, so it needs no successor")
	}
	t, err := l.reserveSuccessor(ctx, s)
	if err != nil {
		return nil, err
	}
	successor, err := l.State(ctx, t)
	if !fault.Is(err, fault.NotFound) {
		return successor, err
	}
	used := s.used
	if checkAhead(s.head.LastReceived, l.clockInstant()) != nil { // its counter is of a future month
		if used, err = l.readMonthCount(ctx, s.identity.Tenant, MonthOf(l.clockInstant())); err != nil && !IsDamage(err) {
			return nil, storeError("succeed", err)
		}
	}
	identity := identityRecord{
		OrganizationID: s.identity.Organization, Origin: s.identity.Origin.Next(),
		Predecessor: &predecessorRecord{Tenant: s.identity.Tenant, Month: used.month, Counted: used.count},
	}
	return l.createLedger(ctx, t, identity, l.versionBehind(ctx, s), nil)
}

// reserveSuccessor stores the fault of a frozen ledger and the handle of its successor, and returns the handle.
func (l *Ledgers) reserveSuccessor(ctx context.Context, s *State) (id.Tenant, error) {
	of := s.identity.Tenant
	known, err := l.findSuccessor(ctx, of)
	if err != nil || known != 0 {
		return known, err
	}
	if _, shown := l.anchors.Find(s.identity.Origin.Next()); shown {
		return 0, fault.New(fault.Conflict, fmt.Sprintf("The log %s was shown before, but is not in this store: restore the store that has it", s.identity.Origin.Next()))
	}
	if err := l.storeFault(ctx, of, s.fault); err != nil {
		return 0, fmt.Errorf("succeed: %w", err)
	}
	t := id.NewTenant()&^sameOwner | of&sameOwner
	value, err := json.Marshal(successorRecord{Tenant: t})
	if err != nil {
		return 0, fmt.Errorf("succeed: %w", err)
	}
	return t, storeError("succeed", l.store.Write(ctx, of, []storage.Change{{Kind: kindSuccessor, Value: value}}))
}

// sameOwner masks the bits of a handle that a successor shares with its predecessor. Processes that share a store divide the
// ledgers by these bits, so both have the same owner.
const sameOwner id.Tenant = 1<<16 - 1

// unknownVersion is larger than any config version that a ledger reaches.
const unknownVersion = 1 << 32

// versionBehind returns a config version that the ledger of s never had.
func (l *Ledgers) versionBehind(ctx context.Context, s *State) uint64 {
	head, err := l.store.Head(ctx, s.identity.Tenant)
	if err != nil || head.ConfigVersion == 0 {
		return unknownVersion
	}
	return head.ConfigVersion + 1
}

// AnchorLast durably makes the last known checkpoint of the frozen ledger of s its anchor, so that the ledger never shows a
// smaller tree. If the stored ledger does not extend the checkpoint, it becomes detached and shows only the checkpoint.
//
// It returns fault.Conflict if the ledger is not frozen or shows a larger tree. The error wraps tlog.ErrSignature or
// tlog.ErrMalformed if the checkpoint is not the ledger's. There must be no concurrent append to the ledger.
func (l *Ledgers) AnchorLast(ctx context.Context, s *State, note []byte) error {
	c, err := s.keys.openCheckpoint(note)
	if err != nil {
		return fmt.Errorf("anchor last checkpoint: %w", err)
	}
	if s.fault.Level != Frozen || c.Size < s.Shown().Size {
		return fault.New(fault.Conflict, fmt.Sprintf("The checkpoint of size %d is not the last one of a frozen ledger", c.Size))
	}
	if err := l.anchors.Put(note); err != nil {
		return unanchored(err)
	}
	led, err := l.residentLedger(ctx, s.identity.Tenant)
	if err != nil {
		return err
	}
	return l.takeOver(ctx, led)
}

// findSuccessor returns the handle of a ledger's successor, or 0. The successor may not be created yet.
func (l *Ledgers) findSuccessor(ctx context.Context, t id.Tenant) (id.Tenant, error) {
	var r successorRecord
	err := l.readOwnRecord(ctx, t, kindSuccessor, &r)
	if errors.Is(err, storage.ErrNotFound) {
		return 0, nil
	}
	return r.Tenant, storeError("read successor", err)
}

// hasSuccessor reports whether a ledger has a successor with an event. It loads neither.
func (l *Ledgers) hasSuccessor(ctx context.Context, t id.Tenant) (bool, error) {
	successor, err := l.findSuccessor(ctx, t)
	if err != nil || successor == 0 {
		return false, err
	}
	head, err := l.store.Head(ctx, successor)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	return head.Size > 0, storeError("read successor", err)
}

// levelWithSuccessor returns Succeeded in place of Frozen if the ledger has a successor with an event.
func (l *Ledgers) levelWithSuccessor(ctx context.Context, t id.Tenant, level Level) (Level, error) {
	if level != Frozen {
		return level, nil
	}
	is, err := l.hasSuccessor(ctx, t)
	if is {
		return Succeeded, err
	}
	return level, err
}

// Successor returns the published state of the successor of s, or nil if there is none with an event.
func (l *Ledgers) Successor(ctx context.Context, s *State) (*State, error) {
	t, err := l.SuccessorOf(ctx, s)
	if err != nil || t == 0 {
		return nil, err
	}
	successor, err := l.State(ctx, t)
	if fault.Is(err, fault.NotFound) || err == nil && successor.Size() == 0 {
		return nil, nil
	}
	return successor, err
}

// SuccessorOf returns the tenant that succeeds s, or 0. The successor may still be under construction.
func (l *Ledgers) SuccessorOf(ctx context.Context, s *State) (id.Tenant, error) {
	if s.fault.Level != Frozen {
		return 0, nil
	}
	return l.findSuccessor(ctx, s.identity.Tenant)
}

// Predecessor returns the published state of the frozen ledger that s succeeds, or nil.
func (l *Ledgers) Predecessor(ctx context.Context, s *State) (*State, error) {
	if s.identity.Predecessor == 0 {
		return nil, nil
	}
	led, err := l.readLedger(ctx, s.identity.Predecessor) // any node may read a frozen ledger
	if err != nil {
		return nil, err
	}
	return led.published.Load(), nil
}
