package log

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// Tile returns the hashes of a tile, 32 bytes each, which the caller must not
// write to. fault.NotFound when the tile does not lie in s at that width.
func (l *Ledgers) Tile(ctx context.Context, s *State, t tlog.Tile) ([]byte, error) {
	b, err := l.readTileHashes(ctx, s, t)
	return b, storeError("read tile", err)
}

// readTileHashes takes partial tiles from the state itself and full ones from the store.
func (l *Ledgers) readTileHashes(ctx context.Context, s *State, t tlog.Tile) ([]byte, error) {
	if !t.Within(s.Size()) {
		return nil, storage.ErrNotFound
	}
	return l.readTileFrom(ctx, s, t, 0)
}

// readTileFrom returns the hashes of a tile that lies in s, from number begin on.
func (l *Ledgers) readTileFrom(ctx context.Context, s *State, t tlog.Tile, begin int) ([]byte, error) {
	end := int(t.Width)
	if t.Index == uint64(s.Size())>>(8*uint(t.Level))/tlog.TileWidth {
		const size = len(id.Hash{})
		p := s.tree.Partial(t.Level)
		if len(p) < end*size {
			return nil, fmt.Errorf("%w: partial tile is missing: level %d", storage.ErrCorrupt, t.Level)
		}
		return p[begin*size : end*size : end*size], nil
	}
	hashes, err := l.store.TileHashes(ctx, s.identity.Tenant, t.Level, t.Index, begin, end)
	if errors.Is(err, storage.ErrNotFound) {
		err = fmt.Errorf("%w: full tile is missing: level %d, index %d", storage.ErrCorrupt, t.Level, t.Index)
	}
	return hashes, err
}

// newProver returns a prover of proofs in the tree of one state, for one request.
func (l *Ledgers) newProver(s *State) *tlog.Prover {
	tiles := &stateTiles{ledgers: l, state: s}
	return tlog.NewProver(tiles, tiles)
}

// stateTiles reads the tiles of one state, and those that were decoded for any
// state of its ledger. It is a tlog.TileReader and a tlog.NodeCache.
type stateTiles struct {
	ledgers *Ledgers
	state   *State
}

// Tile implements tlog.TileReader.
func (r *stateTiles) Tile(ctx context.Context, t tlog.Tile) ([]byte, error) {
	return r.ledgers.readTileHashes(ctx, r.state, t)
}

// Leaves implements tlog.TileReader.
func (r *stateTiles) Leaves(ctx context.Context, begin, end id.Index) ([]byte, error) {
	if begin >= end || end > r.state.Size() {
		return nil, storage.ErrNotFound
	}
	first := begin / tlog.TileWidth * tlog.TileWidth
	index := uint64(begin / tlog.TileWidth)
	if first+tlog.TileWidth <= r.state.Size() {
		return r.ledgers.readLeafHashes(ctx, r.state, index, int(begin-first), int(end-first))
	}
	return r.ledgers.readTileFrom(ctx, r.state, tlog.Tile{Index: index, Width: uint16(end - first)}, int(begin-first))
}

// Nodes implements tlog.NodeCache.
func (r *stateTiles) Nodes(level uint8, index uint64) *tlog.Nodes {
	n, _ := r.ledgers.tiles.Get(tileKey{tenant: r.state.identity.Tenant, level: level, index: index})
	return n
}

// Keep implements tlog.NodeCache.
func (r *stateTiles) Keep(n *tlog.Nodes) {
	t := n.Tile()
	keepTile(r.ledgers.tiles, tileKey{tenant: r.state.identity.Tenant, level: t.Level, index: t.Index}, n)
}
