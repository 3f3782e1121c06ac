package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// tileHashes is the number of hashes in a full tile.
const tileHashes = storage.TileSize / len(id.Hash{})

// compareTile compares a tile that has just become full with the stored tile and its root.
func (x *examiner) compareTile(ctx context.Context, t tlog.FullTile) error {
	place := fmt.Sprintf("tile %d/%d", t.Level, t.Index)
	stored, err := x.store.TileHashes(ctx, x.identity.Tenant, t.Level, t.Index, 0, tileHashes)
	switch {
	case log.IsDamage(err):
		x.reportProblem(log.Frozen, place, err.Error())
	case err != nil:
		return err
	case !bytes.Equal(stored, t.Hashes):
		x.reportProblem(log.Frozen, place, "is not that of the entries")
	}
	roots, err := x.store.TileRoots(ctx, x.identity.Tenant, t.Level, t.Index, t.Index+1)
	switch {
	case log.IsDamage(err):
		x.reportProblem(log.Frozen, "root of "+place, err.Error())
	case err != nil:
		return err
	case roots[0] != t.Root:
		x.reportProblem(log.Frozen, "root of "+place, "is not that of the tile")
	}
	return nil
}

// lookups is the number of names in one look-up.
const lookups = 256

// noteEventID records a name that must lead to an index.
func (x *examiner) noteEventID(ctx context.Context, n storage.DedupKey, at id.Index) error {
	x.names = append(x.names, examinedName{n, at})
	if len(x.names) < lookups {
		return nil
	}
	return x.lookUpNames(ctx)
}

// lookUpNames looks up the recorded event IDs. If that fails because of damage, it looks them up one by one.
func (x *examiner) lookUpNames(ctx context.Context) error {
	names := x.names
	x.names = x.names[:0]
	err := x.compareNames(ctx, names)
	if !log.IsDamage(err) {
		return err
	}
	for i := range names {
		switch err := x.compareNames(ctx, names[i:i+1]); {
		case log.IsDamage(err):
			x.reportIndex(log.Suspect, "event id of", uint64(names[i].at), err.Error())
		case err != nil:
			return err
		}
	}
	return nil
}

func (x *examiner) compareNames(ctx context.Context, names []examinedName) error {
	query := make([]storage.DedupKey, len(names))
	for i := range names {
		query[i] = names[i].name
	}
	found, err := x.store.Lookup(ctx, x.identity.Tenant, query)
	if err != nil {
		return err
	}
	for i, at := range found {
		if at != names[i].at {
			x.reportIndex(log.Suspect, "event id of", uint64(names[i].at), "leads elsewhere")
		}
	}
	return nil
}

// tileLevels is the number of tile levels of the largest tree.
const tileLevels = 64 / 8

// compareHead compares the examined events with the head, and looks for tiles beyond the head.
func (x *examiner) compareHead(ctx context.Context) error {
	switch {
	case x.tree.Root() != x.head.Root:
		x.reportProblem(log.Frozen, "head", "its root is not that of the entries")
	case x.prev != x.head.Last:
		x.reportProblem(log.Frozen, "head", "its last event hash is not that of the last entry")
	case x.dated && x.before != x.head.LastReceived:
		x.reportProblem(log.Frozen, "head", "its last time is not that of the last entry")
	}
	for level := range uint8(tileLevels) {
		if err := x.checkBeyond(ctx, level, uint64(x.head.Size)>>(8*(uint(level)+1))); err != nil {
			return err
		}
	}
	return x.compareCounters(ctx)
}

// checkBeyond reports a tile or tile root beyond the head, which shows that there were more entries. It ignores tiles
// of a head that has moved in the meantime.
func (x *examiner) checkBeyond(ctx context.Context, level uint8, index uint64) error {
	_, err := x.store.TileHashes(ctx, x.identity.Tenant, level, index, 0, tileHashes)
	_, rootErr := x.store.TileRoots(ctx, x.identity.Tenant, level, index, index+1)
	if errors.Is(err, storage.ErrNotFound) && errors.Is(rootErr, storage.ErrNotFound) {
		return nil
	}
	for _, err := range []error{err, rootErr} {
		if err != nil && !log.IsDamage(err) {
			return err
		}
	}
	current, err := x.isCurrent(ctx)
	if current {
		x.reportProblem(log.Frozen, fmt.Sprintf("tile %d/%d", level, index), "lies beyond the head")
	}
	return err
}

// isCurrent reports whether the examined head is still the stored head.
func (x *examiner) isCurrent(ctx context.Context) (bool, error) {
	head, err := x.store.Head(ctx, x.identity.Tenant)
	return err == nil && head.Size == x.head.Size, err
}

// compareCounters compares the counters of all months that have events. Only an examination from the first event on
// knows their values. Unreadable events may belong to any month. The counter of the latest month is compared only if
// the head does not move.
func (x *examiner) compareCounters(ctx context.Context) error {
	if !x.whole || x.head.Size == 0 {
		return nil
	}
	newest := log.MonthOf(x.head.LastReceived)
	x.counted[newest] += 0
	for _, m := range slices.Sorted(maps.Keys(x.counted)) {
		got, err := x.store.Counters(ctx, x.identity.Tenant, []string{m.CounterName()})
		if err != nil && !log.IsDamage(err) {
			return err
		}
		if err == nil && got[0]-x.counted[m] <= x.unread { // a smaller counter wraps around
			continue
		}
		current, err := x.isCurrent(ctx)
		if err != nil {
			return err
		}
		if current || m < newest {
			x.reportProblem(log.Suspect, "counter "+m.CounterName(), "is not the number of events")
		}
	}
	return nil
}
