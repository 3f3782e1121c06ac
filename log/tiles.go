package log

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// tileReader reads tiles for proofs and caches those that are read often. Tiles and leaf hashes never change, except that
// the last tile of a level grows. So all states of a ledger share the cached tiles, even after the ledger was loaded
// again. Methods may be called concurrently.
type tileReader struct {
	store  storage.Ledgers
	nodes  *cache.Map[tileKey, *tlog.Nodes]
	leaves *cache.Map[tileKey, []byte]

	cached, read prometheus.Counter // reads of leaf hashes from memory and from the store
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
		Help: "Reads of leaf hashes for proofs, from memory or from the store.",
	}, []string{"from"})
	r := &tileReader{
		store: store, nodes: newTileCache(o.NodeBytes), leaves: newLeafCache(o.LeafBytes),
		cached: reads.WithLabelValues("memory"), read: reads.WithLabelValues("store"),
	}
	o.Metrics.MustRegister(reads, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "agentledger_leaf_cache_bytes", Help: "Size of the leaf hashes cached for proofs.",
	}, func() float64 { return float64(r.leaves.TotalWeight()) }))
	return r
}

// tileTree is a durable tree of a ledger.
type tileTree struct {
	Tenant id.Tenant
	Size   id.Index
	End    *tlog.Builder // at Size; read-only
}

// Hashes returns the hashes of a tile, 32 bytes each. The caller must not modify them. Partial tiles come from the tree
// itself, full tiles from the store. It returns storage.ErrNotFound if the tree has no such tile of that width.
func (r *tileReader) Hashes(ctx context.Context, in tileTree, t tlog.Tile) ([]byte, error) {
	if !t.Within(in.Size) {
		return nil, storage.ErrNotFound
	}
	return r.readTileFrom(ctx, in, t, 0)
}

// readTileFrom returns the hashes of a tile from hash number begin on.
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

// Prover returns a prover for one request.
func (r *tileReader) Prover(in tileTree) *tlog.Prover {
	p := &treeTiles{reader: r, in: in}
	return tlog.NewProver(p, p)
}

// treeTiles implements tlog.TileReader and tlog.NodeCache for one tree. It shares decoded tiles with other trees of the
// ledger.
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

// tileKey identifies a tile of a ledger.
type tileKey struct {
	tenant id.Tenant
	level  uint8
	index  uint64
}

// hash distributes the tiles of a ledger evenly over the shards.
func (k tileKey) hash() uint64 { return uint64(k.tenant) + k.index + uint64(k.level) }

const (
	tileShards   = 16 // so that concurrent readers don't contend
	tileOverhead = 80 // approximate bytes of a cached tile in addition to its nodes
)

// newTileCache returns the cache of decoded tiles, with a limit in bytes. A tile that has grown is replaced.
func newTileCache(limit int64) *cache.Map[tileKey, *tlog.Nodes] {
	return cache.NewMap(cache.MapOptions[tileKey, *tlog.Nodes]{
		Limit: limit, Shards: tileShards, Hash: tileKey.hash,
		Weight: func(_ tileKey, n *tlog.Nodes) int64 { return int64(n.Bytes()) + tileOverhead },
	})
}

// keepTile caches a tile unless a wider version is cached.
func keepTile(tiles *cache.Map[tileKey, *tlog.Nodes], k tileKey, made *tlog.Nodes) {
	tiles.Update(k, func(before *tlog.Nodes, found bool) (*tlog.Nodes, bool) {
		if found && before.Tile().Width >= made.Tile().Width {
			return before, true
		}
		return made, true
	})
}

// leafTileBytes is the approximate size of a full tile of level 0 in the cache.
const leafTileBytes int64 = tlog.TileWidth*int64(len(id.Hash{})) + 144

// newLeafCache returns the cache of the leaf hashes of full tiles of level 0, with a limit in bytes. A tile is 32 times as
// large as what a proof needs. So if the cache is full, only one read in leafChance reads and caches a whole tile: tiles
// that are read often get into the cache, and the others cost little.
func newLeafCache(limit int64) *cache.Map[tileKey, []byte] {
	return cache.NewMap(cache.MapOptions[tileKey, []byte]{
		Limit: limit, Shards: tileShards, Hash: tileKey.hash,
		Weight: func(tileKey, []byte) int64 { return leafTileBytes },
	})
}

// leafChance is the number of reads per read that may evict a tile.
const leafChance = 8

// readLeafHashes returns the leaf hashes [begin, end) of a full tile.
func (r *tileReader) readLeafHashes(ctx context.Context, in tileTree, index uint64, begin, end int) ([]byte, error) {
	const size = len(id.Hash{})
	k := tileKey{tenant: in.Tenant, index: index}
	if cached, found := r.leaves.Get(k); found {
		r.cached.Inc()
		return cached[begin*size : end*size : end*size], nil
	}
	r.read.Inc()
	full := tlog.Tile{Index: index, Width: tlog.TileWidth}
	if !r.leaves.HasRoom(k, leafTileBytes) && rand.Uint32N(leafChance) > 0 {
		full.Width = uint16(end)
		return r.readTileFrom(ctx, in, full, begin)
	}
	hashes, err := r.readTileFrom(ctx, in, full, 0)
	if err != nil {
		return nil, err
	}
	r.leaves.Put(k, hashes)
	return hashes[begin*size : end*size : end*size], nil
}
