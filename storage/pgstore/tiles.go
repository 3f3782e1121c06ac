package pgstore

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

const tileHashesSQL = `SELECT length(hashes), substring(hashes FROM $4 FOR $5) FROM tile WHERE org = $1 AND level = $2 AND idx = $3`

// TileHashes implements storage.Ledgers.
func (e *Engine) TileHashes(ctx context.Context, t id.Tenant, level uint8, index uint64, begin, end int) ([]byte, error) {
	if err := e.beginCall(ctx); err != nil {
		return nil, fmt.Errorf("read tile hashes: %w", err)
	}
	defer e.endCall()
	const size = len(id.Hash{})
	var length int
	var hashes []byte
	err := e.pool.QueryRow(ctx, tileHashesSQL, int64(t), int16(level), int64(index), begin*size+1, (end-begin)*size).Scan(&length, &hashes)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		err = storage.ErrNotFound
	case err != nil:
		err = readError(err)
	case length != storage.TileSize:
		err = corruptValue("tile")
	}
	if err != nil {
		return nil, fmt.Errorf("read tile %d/%d: %w", level, index, err)
	}
	return hashes, nil
}

const tileRootsSQL = `SELECT idx, root FROM tile WHERE org = $1 AND level = $2 AND idx BETWEEN $3 AND $4 ORDER BY idx`

// TileRoots implements storage.Ledgers.
func (e *Engine) TileRoots(ctx context.Context, t id.Tenant, level uint8, begin, end uint64) ([]id.Hash, error) {
	if err := e.beginCall(ctx); err != nil {
		return nil, fmt.Errorf("read tile roots: %w", err)
	}
	defer e.endCall()
	if begin >= end {
		return nil, nil
	}
	roots, err := e.readTileRoots(ctx, t, level, begin, end-1)
	if err != nil {
		return nil, fmt.Errorf("read tile roots of level %d: %w", level, err)
	}
	return roots, nil
}

// readTileRoots reads the roots of [begin, last]. Numbers from 2^63 on are negative as int8, so a range that includes
// both is read in two pieces.
func (e *Engine) readTileRoots(ctx context.Context, t id.Tenant, level uint8, begin, last uint64) ([]id.Hash, error) {
	if begin <= math.MaxInt64 && last > math.MaxInt64 {
		low, err := e.readTileRoots(ctx, t, level, begin, math.MaxInt64)
		if err != nil {
			return nil, err
		}
		high, err := e.readTileRoots(ctx, t, level, math.MaxInt64+1, last)
		return append(low, high...), err
	}
	rows, err := e.pool.Query(ctx, tileRootsSQL, int64(t), int16(level), int64(begin), int64(last))
	if err != nil {
		return nil, readError(err)
	}
	var roots []id.Hash
	var index int64
	var root []byte
	_, err = pgx.ForEachRow(rows, []any{&index, &root}, func() error {
		var h id.Hash
		if !parseHash(&h, root) {
			return corruptValue("tile root")
		}
		if missing := begin + uint64(len(roots)); uint64(index) != missing {
			return fmt.Errorf("tile %d: %w", missing, storage.ErrNotFound)
		}
		roots = append(roots, h)
		return nil
	})
	if err == nil && uint64(len(roots)) != last-begin+1 {
		err = fmt.Errorf("tile %d: %w", begin+uint64(len(roots)), storage.ErrNotFound)
	}
	return roots, readError(err)
}
