package tlog

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/agentledger/agentledger/id"
)

// sumdbLog is the tree as golang.org/x/mod stores it.
type sumdbLog []tlog.Hash

func (l *sumdbLog) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	var hashes []tlog.Hash
	for _, i := range indexes {
		hashes = append(hashes, (*l)[i])
	}
	return hashes, nil
}

// newSumdbLog adds entries one by one and returns the root at each size.
func newSumdbLog(t *testing.T, n int) (*sumdbLog, []tlog.Hash) {
	t.Helper()
	l := &sumdbLog{}
	roots := []tlog.Hash{tlog.Hash(EmptyRoot())}
	for i := range n {
		hashes, err := tlog.StoredHashes(int64(i), testEntry(i), l)
		if err != nil {
			t.Fatal(err)
		}
		*l = append(*l, hashes...)
		root, err := tlog.TreeHash(int64(i+1), l)
		if err != nil {
			t.Fatal(err)
		}
		roots = append(roots, root)
	}
	return l, roots
}

func converted(proof []tlog.Hash) []id.Hash {
	var hashes []id.Hash
	for _, h := range proof {
		hashes = append(hashes, id.Hash(h))
	}
	return hashes
}

func TestTreeEqualsSumdb(t *testing.T) {
	const size = 1500
	o := newOracle(size)
	if got, want := LeafHash(testEntry(7)), tlog.RecordHash(testEntry(7)); id.Hash(want) != got {
		t.Fatalf("leaf hash: got %v, want %v", got, want)
	}
	theirs, roots := newSumdbLog(t, size)
	var edge Edge
	for n, root := range roots {
		if got := edge.Root(); got != id.Hash(root) {
			t.Fatalf("root at %d: got %v, want %v", n, got, root)
		}
		if n < size {
			edge.Append(o.leaves[n])
		}
	}
	random := rand.New(rand.NewPCG(6962, 4))
	for range 300 {
		n := 1 + random.IntN(size)
		m := random.IntN(n)
		ours, err := Inclusion(t.Context(), o.tiles(t, n), id.Index(m), id.Index(n))
		if err != nil {
			t.Fatal(err)
		}
		want, err := tlog.ProveRecord(int64(n), int64(m), theirs)
		if err != nil || !slices.Equal(ours, converted(want)) {
			t.Errorf("inclusion of %d in %d: differs, %v", m, n, err)
		}
		ours, err = Consistency(t.Context(), o.tiles(t, n), id.Index(m+1), id.Index(n))
		if err != nil {
			t.Fatal(err)
		}
		older, err := tlog.ProveTree(int64(n), int64(m+1), theirs)
		if err != nil || !slices.Equal(ours, converted(older)) {
			t.Errorf("consistency from %d to %d: differs, %v", m+1, n, err)
		}
	}
}

// sumdbTiles serves our tiles to the tile reader of golang.org/x/mod.
type sumdbTiles struct {
	ctx context.Context
	r   *tiles
}

func (s sumdbTiles) Height() int { return 8 }

func (s sumdbTiles) ReadTiles(wanted []tlog.Tile) (data [][]byte, err error) {
	for _, tile := range wanted {
		b, err := s.r.Tile(s.ctx, Tile{Level: uint8(tile.L), Index: uint64(tile.N), Width: uint16(tile.W)})
		if err != nil {
			return nil, err
		}
		data = append(data, b)
	}
	return data, nil
}

func (sumdbTiles) SaveTiles([]tlog.Tile, [][]byte) {}

func TestSumdbReadsOurTiles(t *testing.T) {
	const size = 66_000
	o := newOracle(size)
	root := o.root(0, size)
	for _, m := range []int{0, 255, 256, 40_000, size - 1} {
		reader := tlog.TileHashReader(tlog.Tree{N: size, Hash: tlog.Hash(root)}, sumdbTiles{t.Context(), o.tiles(t, size)})
		proof, err := tlog.ProveRecord(size, int64(m), reader)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.path(m, 0, size); !slices.Equal(got, converted(proof)) {
			t.Errorf("inclusion of %d: differs", m)
		}
	}
}
