package log

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// tileHashes is how many hashes a full tile has.
const tileHashes = storage.TileSize / len(id.Hash{})

// tile compares a tile that has just filled with the stored one and its root.
func (x *examiner) tile(ctx context.Context, t tlog.FullTile) error {
	place := fmt.Sprintf("tile %d/%d", t.Level, t.Index)
	stored, err := x.store.TileHashes(ctx, x.identity.Tenant, t.Level, t.Index, 0, tileHashes)
	switch {
	case isDamage(err):
		x.findAt(Frozen, place, err.Error())
	case err != nil:
		return err
	case !bytes.Equal(stored, t.Hashes):
		x.findAt(Frozen, place, "is not that of the entries")
	}
	roots, err := x.store.TileRoots(ctx, x.identity.Tenant, t.Level, t.Index, t.Index+1)
	switch {
	case isDamage(err):
		x.findAt(Frozen, "root of "+place, err.Error())
	case err != nil:
		return err
	case roots[0] != t.Root:
		x.findAt(Frozen, "root of "+place, "is not that of the tile")
	}
	return nil
}

// lookups is how many names are looked up at once.
const lookups = 256

// name notes a name that must lead to an index.
func (x *examiner) name(ctx context.Context, n storage.DedupKey, at id.Index) error {
	x.names = append(x.names, examinedName{n, at})
	if len(x.names) < lookups {
		return nil
	}
	return x.checkNames(ctx)
}

// checkNames looks up the names since the last call, one by one if one of them
// can't be read.
func (x *examiner) checkNames(ctx context.Context) error {
	names := x.names
	x.names = x.names[:0]
	err := x.lookUp(ctx, names)
	if !isDamage(err) {
		return err
	}
	for i := range names {
		switch err := x.lookUp(ctx, names[i:i+1]); {
		case isDamage(err):
			x.find(Suspect, "event id of", uint64(names[i].at), err.Error())
		case err != nil:
			return err
		}
	}
	return nil
}

func (x *examiner) lookUp(ctx context.Context, names []examinedName) error {
	asked := make([]storage.DedupKey, len(names))
	for i := range names {
		asked[i] = names[i].name
	}
	found, err := x.store.Lookup(ctx, x.identity.Tenant, asked)
	if err != nil {
		return err
	}
	for i, at := range found {
		if at != names[i].at {
			x.find(Suspect, "event id of", uint64(names[i].at), "leads elsewhere")
		}
	}
	return nil
}

// tileLevels is how many levels the tiles of the largest tree have.
const tileLevels = 64 / 8

// atHead compares what the examiner arrived at with the head, and looks beyond.
func (x *examiner) atHead(ctx context.Context) error {
	switch {
	case x.tree.Root() != x.head.Root:
		x.findAt(Frozen, "head", "its root is not that of the entries")
	case x.prev != x.head.Last:
		x.findAt(Frozen, "head", "its last event hash is not that of the last entry")
	case x.dated && x.before != x.head.LastReceived:
		x.findAt(Frozen, "head", "its last time is not that of the last entry")
	}
	for level := range uint8(tileLevels) {
		if err := x.beyond(ctx, level, uint64(x.head.Size)>>(8*(uint(level)+1))); err != nil {
			return err
		}
	}
	return x.counters(ctx)
}

// beyond reports a tile, or root of one, that the head does not reach: entries
// were there once. A head that has moved may have reached it meanwhile.
func (x *examiner) beyond(ctx context.Context, level uint8, index uint64) error {
	_, err := x.store.TileHashes(ctx, x.identity.Tenant, level, index, 0, tileHashes)
	_, rootErr := x.store.TileRoots(ctx, x.identity.Tenant, level, index, index+1)
	if errors.Is(err, storage.ErrNotFound) && errors.Is(rootErr, storage.ErrNotFound) {
		return nil
	}
	for _, err := range []error{err, rootErr} {
		if err != nil && !isDamage(err) {
			return err
		}
	}
	current, err := x.current(ctx)
	if current {
		x.findAt(Frozen, fmt.Sprintf("tile %d/%d", level, index), "lies beyond the head")
	}
	return err
}

// current reports whether the examined head is still the stored one.
func (x *examiner) current(ctx context.Context) (bool, error) {
	head, err := x.store.Head(ctx, x.identity.Tenant)
	return err == nil && head.Size == x.head.Size, err
}

// counters compares the counters of all months that have events. Only an
// examination from the first event on knows how many there are. The newest month
// counts only while the head stands still.
func (x *examiner) counters(ctx context.Context) error {
	if !x.whole || x.head.Size == 0 {
		return nil
	}
	newest := monthOf(x.head.LastReceived)
	x.counted[newest] += 0
	for _, m := range slices.Sorted(maps.Keys(x.counted)) {
		got, err := x.store.Counters(ctx, x.identity.Tenant, []string{m.counter()})
		if err != nil && !isDamage(err) {
			return err
		}
		if err == nil && got[0] == x.counted[m] {
			continue
		}
		current, err := x.current(ctx)
		if err != nil {
			return err
		}
		if current || m < newest {
			x.findAt(Suspect, "counter "+m.counter(), "is not the number of events")
		}
	}
	return nil
}
