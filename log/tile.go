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
	b, err := l.hashes(ctx, s, t)
	return b, storeError("read tile", err)
}

// hashes takes partial tiles from the state itself and full ones from the store.
func (l *Ledgers) hashes(ctx context.Context, s *State, t tlog.Tile) ([]byte, error) {
	if !t.Within(s.Size()) {
		return nil, storage.ErrNotFound
	}
	n := int(t.Width) * len(id.Hash{})
	if p := s.tree.Partial(t.Level); t.Index == uint64(s.Size())>>(8*uint(t.Level))/tlog.TileWidth {
		if len(p) < n {
			return nil, fmt.Errorf("%w: partial tile is missing: level %d", storage.ErrCorrupt, t.Level)
		}
		return p[:n:n], nil
	}
	tiles, err := l.store.Tiles(ctx, s.identity.Tenant, t.Level, []uint64{t.Index})
	if errors.Is(err, storage.ErrNotFound) {
		err = fmt.Errorf("%w: full tile is missing: level %d, index %d", storage.ErrCorrupt, t.Level, t.Index)
	}
	if err != nil {
		return nil, err
	}
	return tiles[0][:n:n], nil
}

// prover makes proofs in the tree of one state, for one request.
func (l *Ledgers) prover(s *State) *tlog.Prover {
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
	return r.ledgers.hashes(ctx, r.state, t)
}

// Nodes implements tlog.NodeCache.
func (r *stateTiles) Nodes(level uint8, index uint64) *tlog.Nodes {
	return r.ledgers.tiles.get(tileKey{tenant: r.state.identity.Tenant, level: level, index: index})
}

// Keep implements tlog.NodeCache.
func (r *stateTiles) Keep(n *tlog.Nodes) {
	t := n.Tile()
	r.ledgers.tiles.put(tileKey{tenant: r.state.identity.Tenant, level: t.Level, index: t.Index}, n)
}
