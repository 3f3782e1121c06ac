package log

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// tileReader reads the tiles of ledgers' trees for proofs, and caches those that are read often. Tiles and leaf hashes
// never change, except that the last tile of a level gets wider. So all states of a ledger share the cached tiles, and
// so does a ledger that left memory and was read back. Its methods may be called concurrently.
type tileReader struct {
	store  storage.Ledgers
	nodes  *cache.Map[tileKey, *tlog.Nodes]
	leaves *cache.Map[tileKey, []byte]

	kept, read prometheus.Counter // reads of leaf hashes, by where they were
}

// tileOptions bound the caches of a reader, in bytes.
type tileOptions struct {
	NodeBytes int64 // of decoded tiles
	LeafBytes int64 // of leaf hashes
	Metrics   prometheus.Registerer
}

// newTileReader returns a reader with empty caches.
func newTileReader(store storage.Ledgers, o tileOptions) *tileReader {
	reads := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentledger_leaf_reads_total",
		Help: "Reads of leaf hashes for proofs: kept in memory, or read from the store.",
	}, []string{"from"})
	r := &tileReader{
		store: store, nodes: newTileCache(o.NodeBytes), leaves: newLeafCache(o.LeafBytes),
		kept: reads.WithLabelValues("memory"), read: reads.WithLabelValues("store"),
	}
	o.Metrics.MustRegister(reads, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "agentledger_leaf_cache_bytes", Help: "Leaf hashes kept in memory for proofs.",
	}, func() float64 { return float64(r.leaves.TotalWeight()) }))
	return r
}

// tileTree is a durable tree of a ledger.
type tileTree struct {
	Tenant id.Tenant
	Size   id.Index
	End    *tlog.Builder // at Size; only read
}

// Hashes returns the hashes of a tile, 32 bytes each, which the caller must not modify. It takes partial tiles from the
// tree itself and full ones from the store. It returns storage.ErrNotFound if the tree has no such tile of that width.
func (r *tileReader) Hashes(ctx context.Context, in tileTree, t tlog.Tile) ([]byte, error) {
	if !t.Within(in.Size) {
		return nil, storage.ErrNotFound
	}
	return r.readTileFrom(ctx, in, t, 0)
}

// readTileFrom returns the hashes of a tile of the tree, starting with hash number begin.
func (r *tileReader) readTileFrom(ctx context.Context, in tileTree, t tlog.Tile, begin int) ([]byte, error) {
	end := int(t.Width)
	if t.Index == uint64(in.Size)>>(8*uint(t.Level))/tlog.TileWidth {
		const size = len(id.Hash{})
		p := in.End.Partial(t.Level)
		if len(p) < end*size {
			return nil, fmt.Errorf("%w: partial tile is missing: level %d", storage.ErrCorrupt, t.Level)
		}
		return p[begin*size : end*size : end*size], nil
	}
	hashes, err := r.store.TileHashes(ctx, in.Tenant, t.Level, t.Index, begin, end)
	if errors.Is(err, storage.ErrNotFound) {
		err = fmt.Errorf("%w: full tile is missing: level %d, index %d", storage.ErrCorrupt, t.Level, t.Index)
	}
	return hashes, err
}

// Prover returns a prover for one request that proves in a tree.
func (r *tileReader) Prover(in tileTree) *tlog.Prover {
	p := &treeTiles{reader: r, in: in}
	return tlog.NewProver(p, p)
}

// treeTiles reads the tiles of one tree, and shares decoded tiles with the other trees of its ledger. It is a
// tlog.TileReader and a tlog.NodeCache.
type treeTiles struct {
	reader *tileReader
	in     tileTree
}

// Tile implements tlog.TileReader.
func (p *treeTiles) Tile(ctx context.Context, t tlog.Tile) ([]byte, error) {
	return p.reader.Hashes(ctx, p.in, t)
}

// Leaves implements tlog.TileReader.
func (p *treeTiles) Leaves(ctx context.Context, begin, end id.Index) ([]byte, error) {
	if begin >= end || end > p.in.Size {
		return nil, storage.ErrNotFound
	}
	first := begin / tlog.TileWidth * tlog.TileWidth
	index := uint64(begin / tlog.TileWidth)
	if first+tlog.TileWidth <= p.in.Size {
		return p.reader.readLeafHashes(ctx, p.in, index, int(begin-first), int(end-first))
	}
	return p.reader.readTileFrom(ctx, p.in, tlog.Tile{Index: index, Width: uint16(end - first)}, int(begin-first))
}

// Nodes implements tlog.NodeCache.
func (p *treeTiles) Nodes(level uint8, index uint64) *tlog.Nodes {
	n, _ := p.reader.nodes.Get(tileKey{tenant: p.in.Tenant, level: level, index: index})
	return n
}

// Keep implements tlog.NodeCache.
func (p *treeTiles) Keep(n *tlog.Nodes) {
	t := n.Tile()
	keepTile(p.reader.nodes, tileKey{tenant: p.in.Tenant, level: t.Level, index: t.Index}, n)
}
