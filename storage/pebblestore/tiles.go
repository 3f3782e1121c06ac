package pebblestore

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// TileHashes implements storage.Ledgers.
func (e *Engine) TileHashes(ctx context.Context, t id.Tenant, level uint8, index uint64, begin, end int) ([]byte, error) {
	if err := e.beginCall(ctx); err != nil {
		return nil, fmt.Errorf("read tile hashes: %w", err)
	}
	defer e.endCall()
	return e.readTileRange(t, level, index, begin*len(id.Hash{}), end*len(id.Hash{}))
}

// readTileRange returns the bytes [begin, end) of a tile.
func (e *Engine) readTileRange(t id.Tenant, level uint8, index uint64, begin, end int) (hashes []byte, err error) {
	key := appendTileKey(make([]byte, 0, prefixLen+tileLen), t, familyTile, level, index)
	err = e.readValue(key, func(v []byte) error {
		if len(v) != storage.TileSize {
			return corruptValue("tile")
		}
		hashes = append([]byte{}, v[begin:end]...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read tile %d/%d: %w", level, index, err)
	}
	return hashes, nil
}

// TileRoots implements storage.Ledgers.
func (e *Engine) TileRoots(ctx context.Context, t id.Tenant, level uint8, begin, end uint64) ([]id.Hash, error) {
	if err := e.beginCall(ctx); err != nil {
		return nil, fmt.Errorf("read tile roots: %w", err)
	}
	defer e.endCall()
	if begin >= end {
		return nil, nil
	}
	roots, err := e.readTileRoots(t, level, begin, end)
	if err != nil {
		return nil, fmt.Errorf("read tile roots of level %d: %w", level, err)
	}
	return roots, nil
}

func (e *Engine) readTileRoots(t id.Tenant, level uint8, begin, end uint64) (roots []id.Hash, err error) {
	it, err := e.db.NewIter(&pebble.IterOptions{
		LowerBound: appendTileKey(nil, t, familyTileRoot, level, begin),
		UpperBound: appendTileKey(nil, t, familyTileRoot, level, end),
	})
	if err != nil {
		return nil, readError(err)
	}
	defer func() { err = cmp.Or(err, readError(it.Close())) }()
	next := begin
	for more := it.First(); more; more = it.Next() {
		index, root, err := tileRootAt(it)
		if err != nil {
			return nil, err
		}
		if index != next {
			break
		}
		roots = append(roots, root)
		next++
	}
	if err := it.Error(); err != nil {
		return nil, readError(err)
	}
	if next != end {
		return nil, fmt.Errorf("tile %d: %w", next, storage.ErrNotFound)
	}
	return roots, nil
}

func tileRootAt(it *pebble.Iterator) (index uint64, root id.Hash, err error) {
	v, err := it.ValueAndErr()
	if err != nil {
		return 0, root, readError(err)
	}
	key := it.Key()
	if len(key) != prefixLen+tileLen || len(v) != len(root) {
		return 0, root, corruptValue("tile root")
	}
	return binary.BigEndian.Uint64(key[prefixLen+1:]), id.Hash(v), nil
}
