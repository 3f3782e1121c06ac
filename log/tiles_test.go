package log

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/tlog"
)

// blank is a log of nothing but zeros, with the cache of one ledger.
type blank struct {
	treeTiles
	reads, above int // tiles read in all, and above level 0
}

func newBlank(c *cache.Map[tileKey, *tlog.Nodes], t id.Tenant) *blank {
	return &blank{treeTiles: treeTiles{reader: &tileReader{nodes: c}, in: tileTree{Tenant: t}}}
}

func (b *blank) Tile(_ context.Context, t tlog.Tile) ([]byte, error) {
	b.reads++
	if t.Level > 0 {
		b.above++
	}
	return make([]byte, 32*int(t.Width)), nil
}

func (b *blank) Leaves(_ context.Context, begin, end id.Index) ([]byte, error) {
	return make([]byte, 32*int(end-begin)), nil
}

// prove makes a proof of the first leaf of a level-0 tile, where the log has
// that many leaves, and returns how many tiles were read for it.
func (b *blank) prove(t *testing.T, tile uint64, size id.Index) int {
	t.Helper()
	before := b.reads
	if _, err := tlog.NewProver(b, b).Inclusion(t.Context(), id.Index(tile*tlog.TileWidth), size); err != nil {
		t.Fatal(err)
	}
	return b.reads - before
}

const crownBytes = 63*32 + 48 + 80 // of a full tile of level 0 in the cache

// As long as there is room nothing is dropped, and no tile is read a second time.
func TestTileCacheKeepsWhatFits(t *testing.T) {
	const tiles = 4 * tlog.TileWidth
	c := newTileCache(tiles*crownBytes + tileShards*40<<10)
	red, blue := newBlank(c, 5), newBlank(c, 6)
	for range 2 {
		for i := range uint64(tiles / 2) {
			red.prove(t, i, tiles/2*tlog.TileWidth)
			blue.prove(t, i, tiles/2*tlog.TileWidth)
		}
	}
	const above = 2 * (2 + 1) // each ledger has two tiles of level 1 and one of level 2
	if held := c.Len(); held != tiles+above {
		t.Errorf("got %d tiles, want %d", held, tiles+above)
	}
	for i := range uint64(tiles / 2) {
		if got := red.prove(t, i, tiles/2*tlog.TileWidth); got != 0 {
			t.Fatalf("tile %d: read %d tiles, want none", i, got)
		}
	}
}

// A cache that is too small is full all the time, and what everybody uses stays.
func TestTileCacheAtItsBound(t *testing.T) {
	const tiles, fit = 4 * tlog.TileWidth, 2 * tlog.TileWidth
	c := newTileCache(fit*crownBytes + 5*(20<<10))
	b := newBlank(c, 5)
	random := rand.New(rand.NewPCG(1, 2))
	const proofs = 4 * tiles
	for i := range 2 * proofs {
		if i == proofs {
			b.reads, b.above = 0, 0
		}
		b.prove(t, random.Uint64N(tiles), tiles*tlog.TileWidth)
	}
	if held := c.Len(); held < fit*8/10 {
		t.Errorf("got %d tiles, want nearly the %d that fit", held, fit)
	}
	if crowns := b.reads - b.above; crowns > proofs*6/10 {
		t.Errorf("%d proofs read %d tiles of level 0, want about a half", proofs, crowns)
	}
	if b.above > proofs/10 {
		t.Errorf("%d proofs read %d tiles of higher levels, want few", proofs, b.above)
	}
}

func TestTileCacheKeepsTheWiderVersion(t *testing.T) {
	c := newTileCache(1 << 20)
	b := newBlank(c, 5)
	for _, size := range []id.Index{20, 200, 100, 256, 10} {
		b.prove(t, 0, size)
	}
	k := tileKey{tenant: 5}
	if got, _ := c.Get(k); got == nil || got.Tile().Width != 256 {
		t.Fatalf("got %v, want the full tile", got)
	}
	if tiles, bytes := c.Len(), c.TotalWeight(); tiles != 1 || bytes != crownBytes {
		t.Errorf("got %d tiles of %d bytes, want 1 of %d", tiles, bytes, crownBytes)
	}
	if got, _ := c.Get(tileKey{tenant: 6}); got != nil {
		t.Errorf("another ledger got %v", got.Tile())
	}
}

// A tile that is larger than the whole cache is not kept.
func TestTileCacheOfNoRoom(t *testing.T) {
	c := newTileCache(tileShards * 100)
	newBlank(c, 5).prove(t, 0, 256)
	if tiles := c.Len(); tiles != 0 {
		t.Errorf("got %d tiles, want none", tiles)
	}
}
