package log

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// FsckResult counts what Fsck looked at.
type FsckResult struct {
	Ledgers, Events, Findings int
	Importing, Moved          int // of the ledgers: not open for events here, without being at fault
	Succeeded                 int // frozen ones in whose place another goes on
}

// Fsck re-verifies every ledger of a store from its first event, and each head
// against its anchor, and reports what is wrong. The store must have no writer.
// anchors may be nil. An error means that the check could not be finished.
func Fsck(ctx context.Context, store Store, keyring *seal.Keyring, anchors *Anchors, report func(Finding)) (FsckResult, error) {
	var result FsckResult
	met := make(map[anchorKey]bool)
	for t, err := range store.Tenants(ctx) {
		if err != nil {
			return result, fmt.Errorf("fsck: list ledgers: %w", err)
		}
		l := &Ledgers{store: store, keyring: keyring, anchors: anchors}
		identity, keys, err := l.readIdentity(ctx, t)
		if err != nil {
			identity = &Identity{Tenant: t, Origin: "(unknown)"}
			report(Finding{Tenant: t, Origin: identity.Origin, Place: "identity", Problem: err.Error(), Level: Frozen})
			result.Findings++
			continue
		}
		result.Ledgers++
		met[keyOf(identity.Origin)] = true
		counted := func(f Finding) {
			result.Findings++
			report(f)
		}
		size, level, err := fsckLedger(ctx, l, identity, keys, counted)
		result.Events += size
		switch level {
		case Importing:
			result.Importing++
		case Moved:
			result.Moved++
		case Succeeded:
			result.Succeeded++
		}
		if err != nil {
			return result, fmt.Errorf("fsck: %s: %w", identity.Origin, err)
		}
	}
	if anchors == nil {
		return result, nil
	}
	lost, err := anchors.without(met)
	if err != nil {
		return result, fmt.Errorf("fsck: %w", err)
	}
	for _, origin := range lost {
		report(Finding{Origin: origin, Place: "anchor", Problem: "there is no ledger of this origin in the store", Level: Frozen})
	}
	result.Findings += len(lost)
	return result, nil
}

func fsckLedger(ctx context.Context, l *Ledgers, identity *Identity, keys *logKeys, report func(Finding)) (size int, level Level, err error) {
	head, err := l.store.Head(ctx, identity.Tenant)
	if isDamage(err) {
		report(Finding{Tenant: identity.Tenant, Origin: identity.Origin, Place: "head", Problem: err.Error(), Level: Frozen})
		return 0, Healthy, nil
	}
	if err != nil {
		return 0, Healthy, err
	}
	x := newExaminer(l.store, identity, head, report)
	if level, err = x.records(ctx, l); err != nil {
		return 0, level, err
	}
	err = x.advance(ctx, head.Size)
	if err == nil {
		err = x.atHead(ctx)
	}
	if err == nil && level != Importing && level != Succeeded {
		err = x.anchor(ctx, l, keys)
	}
	if err == nil && identity.Predecessor != 0 && head.Size > 0 {
		err = x.succession(ctx, l)
	}
	if errors.Is(err, errExamined) {
		err = nil
	}
	return int(x.tree.Size()), level, err
}

// records reports what is on record of the ledger, and what of that can't be read.
func (x *examiner) records(ctx context.Context, l *Ledgers) (Level, error) {
	known, err := l.readFault(ctx, x.identity.Tenant)
	switch {
	case isDamage(err):
		x.findAt(Frozen, "fault record", err.Error())
	case err != nil:
		return known.Level, err
	}
	level, err := l.orSucceeded(ctx, x.identity.Tenant, known.Level)
	if err != nil {
		return level, err
	}
	switch level {
	case Healthy, Importing, Moved, Succeeded: // what a succeeded one is frozen for is told by its successor
	default:
		x.findAt(level, "ledger", "has a fault on record: "+known.Reason)
	}
	if _, err = l.Reverified(ctx, x.identity.Tenant); isDamage(err) {
		x.findAt(Suspect, "re-verification record", err.Error())
		err = nil
	}
	return level, err
}

// anchor compares the examined head with its anchor.
func (x *examiner) anchor(ctx context.Context, l *Ledgers, keys *logKeys) error {
	if l.anchors == nil {
		return nil
	}
	l.tiles, l.leafCache = newTileCache[*tlog.Nodes](1<<20), newLeafCache(1<<20)
	shown, ok := l.anchors.find(x.identity.Origin)
	if !ok {
		if x.head.Size > 0 {
			x.findAt(ReadOnly, "anchor", "is missing")
		}
		return nil
	}
	s := &State{identity: x.identity, keys: keys, head: x.head, tree: x.tree}
	ok, err := extends(ctx, l, s, shown.size, shown.root)
	switch {
	case isDamage(err):
		x.findAt(Frozen, "anchor", "can't be compared: "+err.Error())
	case err != nil:
		return err
	case !ok:
		x.findAt(Frozen, "head", fmt.Sprintf("does not extend the checkpoint shown at size %d", shown.size))
	}
	return nil
}

// succession checks that the first event of a successor says which ledger it
// succeeds, with a checkpoint that this one has signed.
func (x *examiner) succession(ctx context.Context, l *Ledgers) error {
	first, err := one(x.store.Events(ctx, x.identity.Tenant, 0, 1, storage.Records|storage.Envelopes))
	if isDamage(err) {
		return nil // which has been told
	}
	if err != nil {
		return err
	}
	said, err := verify.ReadSuccession(x.identity.Origin, EntryOf(first), first.Record, first.Envelope)
	if err != nil {
		x.findAt(Suspect, "record 0", err.Error())
		return nil
	}
	before, keys, err := l.readIdentity(ctx, x.identity.Predecessor)
	if err == nil && before.Origin != said.Predecessor {
		err = errInconsistent
	}
	if err == nil {
		_, err = keys.open([]byte(said.Checkpoint))
	}
	if err != nil {
		x.findAt(Suspect, "predecessor", "is not the one that record 0 names: "+err.Error())
	}
	return nil
}
