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

// A frozen ledger is never resumed. The way on is a successor: another ledger of the same organization, under a
// handle, an origin and a log key of its own, whose first event names its predecessor. Both know each other: the
// successor by its identity, the frozen ledger by a record.

// kindSuccessor is the record, under key "" in a frozen ledger's partition, of the ledger that goes on in its place.
const kindSuccessor storage.Kind = "ledger_successor"

type successorRecord struct {
	Tenant id.Tenant `json:"tenant"`
}

// predecessorRecord is the part of a successor's identity that describes the frozen ledger.
type predecessorRecord struct {
	Tenant  id.Tenant `json:"tenant"`
	Month   Month     `json:"month"`   // in which the succession was
	Counted uint64    `json:"counted"` // events of that month that count against the plan
}

// initialCounters are those that a new ledger begins with: the month's events go on counting.
func (i *Identity) initialCounters() []storage.Counter {
	if i.carried.count == 0 {
		return nil
	}
	return []storage.Counter{{Name: i.carried.month.CounterName(), Value: i.carried.count}}
}

// OfLedger reports whether records of a kind are about one ledger itself: a successor does not get them.
func OfLedger(kind storage.Kind) bool {
	return kind == kindIdentity || kind == kindFault || kind == KindReverified || kind == kindSuccessor
}

// Succeed returns the successor of the frozen ledger of s, and makes it, empty, when there is none yet. The frozen
// ledger is put on record as such, so that it stays frozen if its store changes. fault.Conflict when the ledger is
// not frozen, or when it had a successor that this store does not know.
func (l *Ledgers) Succeed(ctx context.Context, s *State) (*State, error) {
	if s.fault.Level != Frozen {
		return nil, fault.New(fault.Conflict, "The ledger is not frozen: it goes on by itself")
	}
	t, err := l.reserveSuccessor(ctx, s)
	if err != nil {
		return nil, err
	}
	heir, err := l.State(ctx, t)
	if !fault.Is(err, fault.NotFound) {
		return heir, err
	}
	used := s.used
	if checkAhead(s.head.LastReceived, l.clockInstant()) != nil { // its counter is of a month that has not come
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

// reserveSuccessor puts a ledger on record as frozen, with the handle of its successor.
func (l *Ledgers) reserveSuccessor(ctx context.Context, s *State) (id.Tenant, error) {
	of := s.identity.Tenant
	known, err := l.findSuccessor(ctx, of)
	if err != nil || known != 0 {
		return known, err
	}
	if _, shown := l.anchors.Find(s.identity.Origin.Next()); shown {
		return 0, fault.New(fault.Conflict, fmt.Sprintf("The log %s was shown before, and is not in this store: bring the store back that has it", s.identity.Origin.Next()))
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

// sameOwner is the part of a handle that a successor has in common with its predecessor, so that processes that
// share the store and divide the ledgers by their last bits give both to one owner.
const sameOwner id.Tenant = 1<<16 - 1

// unknownVersion is above every config version that a ledger reaches.
const unknownVersion = 1 << 32

// versionBehind is a config version that the ledger of s never had.
func (l *Ledgers) versionBehind(ctx context.Context, s *State) uint64 {
	head, err := l.store.Head(ctx, s.identity.Tenant)
	if err != nil || head.ConfigVersion == 0 {
		return unknownVersion
	}
	return head.ConfigVersion + 1
}

// AnchorLast makes the last known checkpoint of the frozen ledger of s its anchor,
// durably, so that the ledger never shows a smaller tree. When the stored ledger does not
// extend the checkpoint, it is detached from then on and shows that checkpoint alone.
//
// fault.Conflict when the ledger is not frozen, or shows a larger tree; the error wraps tlog.ErrSignature or
// tlog.ErrMalformed for a checkpoint that is not the ledger's. The ledger MUST have no other append meanwhile.
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

// findSuccessor returns the handle of the ledger that goes on in place of one, or is being made to; 0 for none.
func (l *Ledgers) findSuccessor(ctx context.Context, t id.Tenant) (id.Tenant, error) {
	var r successorRecord
	err := l.readOwnRecord(ctx, t, kindSuccessor, &r)
	if errors.Is(err, storage.ErrNotFound) {
		return 0, nil
	}
	return r.Tenant, storeError("read successor", err)
}

// hasSuccessor reports whether another ledger has gone on in place of one, without loading either.
func (l *Ledgers) hasSuccessor(ctx context.Context, t id.Tenant) (bool, error) {
	heir, err := l.findSuccessor(ctx, t)
	if err != nil || heir == 0 {
		return false, err
	}
	head, err := l.store.Head(ctx, heir)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	return head.Size > 0, storeError("read successor", err)
}

// levelWithSuccessor returns Succeeded in place of Frozen for such a ledger.
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

// Successor returns the published state of the ledger that has gone on in place of
// that of s, nil when there is none with an event.
func (l *Ledgers) Successor(ctx context.Context, s *State) (*State, error) {
	t, err := l.SuccessorOf(ctx, s)
	if err != nil || t == 0 {
		return nil, err
	}
	heir, err := l.State(ctx, t)
	if fault.Is(err, fault.NotFound) || err == nil && heir.Size() == 0 {
		return nil, nil
	}
	return heir, err
}

// SuccessorOf returns the handle of the ledger that goes on in place of that of s, or is being made to; 0 for none.
func (l *Ledgers) SuccessorOf(ctx context.Context, s *State) (id.Tenant, error) {
	if s.fault.Level != Frozen {
		return 0, nil
	}
	return l.findSuccessor(ctx, s.identity.Tenant)
}

// Predecessor returns the published state of the frozen ledger that the one of s succeeds, nil when it succeeds none.
func (l *Ledgers) Predecessor(ctx context.Context, s *State) (*State, error) {
	if s.identity.Predecessor == 0 {
		return nil, nil
	}
	led, err := l.readLedger(ctx, s.identity.Predecessor) // it is frozen, so that its owner does not matter
	if err != nil {
		return nil, err
	}
	return led.published.Load(), nil
}
