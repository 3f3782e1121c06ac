package log

import (
	"context"
	"math/rand/v2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// leafTile is the content of a full tile of level 0, which never changes: what proofs
// need below the decoded tiles.
type leafTile struct {
	index  uint64
	hashes []byte
}

// Tile implements cached.
func (t *leafTile) Tile() tlog.Tile { return tlog.Tile{Index: t.index, Width: tlog.TileWidth} }

// Bytes implements cached.
func (t *leafTile) Bytes() int { return leafTileBytes }

const leafTileBytes = tlog.TileWidth*len(id.Hash{}) + 64

// leafCache keeps leaf hashes, so that a proof takes them from memory and not from the
// engine. A tile is 32 times as much as a proof needs of it: when there is no room, it
// is read and kept for one proof in leafChance alone, so that what is asked for again
// and again gets there and what is not costs little.
type leafCache struct{ tiles *tileCache[*leafTile] }

const leafChance = 8

func newLeafCache(bytes int64) leafCache { return leafCache{newTileCache[*leafTile](bytes)} }

// leaves returns the leaf hashes [begin, end) of one full tile of s.
func (l *Ledgers) leaves(ctx context.Context, s *State, index uint64, begin, end int) ([]byte, error) {
	const size = len(id.Hash{})
	k := tileKey{tenant: s.identity.Tenant, index: index}
	if kept := l.leafCache.tiles.get(k); kept != nil {
		l.countLeaves(func(m *leafMetrics) { m.kept.Inc() })
		return kept.hashes[begin*size : end*size : end*size], nil
	}
	l.countLeaves(func(m *leafMetrics) { m.read.Inc() })
	full := tlog.Tile{Index: index, Width: tlog.TileWidth}
	if !l.leafCache.tiles.hasRoom(k, nil) && rand.Uint32N(leafChance) > 0 {
		full.Width = uint16(end)
		return l.part(ctx, s, full, begin)
	}
	hashes, err := l.part(ctx, s, full, 0)
	if err != nil {
		return nil, err
	}
	l.leafCache.tiles.put(k, &leafTile{index, hashes})
	return hashes[begin*size : end*size : end*size], nil
}

// countLeaves counts where somebody looks: who checks a store by itself has no metrics.
func (l *Ledgers) countLeaves(count func(*leafMetrics)) {
	if l.metrics != nil {
		count(&l.metrics.leaves)
	}
}
