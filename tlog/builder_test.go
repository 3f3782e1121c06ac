package tlog

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/id"
)

// checkFull compares the tiles that a builder returned with the oracle.
func checkFull(t *testing.T, o *oracle, full []FullTile) {
	t.Helper()
	for _, tile := range full {
		span := 1 << (8 * int(tile.Level))
		begin := int(tile.Index) * 256 * span
		want, err := o.tiles(t, begin+256*span).Tile(t.Context(), Tile{Level: tile.Level, Index: tile.Index, Width: 256})
		if err != nil || !bytes.Equal(tile.Hashes, want) || tile.Root != o.root(begin, begin+256*span) {
			t.Fatalf("tile %d/%d: differs, %v", tile.Level, tile.Index, err)
		}
	}
}

// checkPartials compares the partial tiles of a builder with the oracle.
func checkPartials(t *testing.T, o *oracle, b *Builder) {
	t.Helper()
	reader := o.tiles(t, int(b.Size()))
	for level := range uint8(9) {
		got := b.Partial(level)
		if width := len(got) / 32; width > 0 {
			want, err := reader.Tile(t.Context(), widestTileAt(level, uint64(b.Size())>>(8*(level+1)), b.Size()))
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("size %d: partial tile of level %d: differs, %v", b.Size(), level, err)
			}
		}
	}
	if want := o.root(0, int(b.Size())); b.Root() != want {
		t.Fatalf("size %d: got root %v, want %v", b.Size(), b.Root(), want)
	}
}

func TestBuilderLeafByLeaf(t *testing.T) {
	o := newOracle(1100)
	var b Builder
	var full []FullTile
	for n := range 1100 {
		checkPartials(t, o, &b)
		full = b.Append(full, o.leaves[n])
		if len(full) != (n+1)/256 {
			t.Fatalf("size %d: got %d full tiles", n+1, len(full))
		}
	}
	checkFull(t, o, full)
}

func TestBuilderByBatches(t *testing.T) {
	const size = 2*65536 + 300
	o := newOracle(size)
	random := rand.New(rand.NewPCG(6962, 5))
	b := &Builder{}
	var full []FullTile
	for begin := 0; begin < size; {
		end := min(size, begin+random.IntN(9000))
		if random.IntN(2) == 0 { // a batch that is built and discarded
			b.Clone().Append(nil, o.leaves[size-(end-begin):]...)
		}
		next := b.Clone()
		full = next.Append(full, o.leaves[begin:end]...)
		b, begin = next, end
		checkPartials(t, o, b)
	}
	checkFull(t, o, full)
	if want := size/256 + 2; len(full) != want {
		t.Errorf("got %d full tiles, want %d", len(full), want)
	}
	edge := b.Edge()
	if edge.Root() != b.Root() || edge.Size() != b.Size() {
		t.Errorf("edge: got %v at %d", edge.Root(), edge.Size())
	}
}

// restore returns a builder from what storage would contain of a tree of n leaves.
func restore(o *oracle, n int) (*Builder, error) {
	var hashes [][]id.Hash
	for _, t := range Partials(id.Index(n)) {
		span := 1 << (8 * int(t.Level))
		var level []id.Hash
		for i := int(t.Index) * 256; i < int(t.Index)*256+int(t.Width); i++ {
			level = append(level, o.root(i*span, (i+1)*span))
		}
		hashes = append(hashes, level)
	}
	return NewBuilder(id.Index(n), hashes...)
}

func TestRestoredBuilderContinues(t *testing.T) {
	const size = 65536 + 600
	o := newOracle(size)
	for _, n := range []int{0, 1, 2, 3, 5, 255, 256, 257, 511, 512, 65535, 65536, 65537, 65536 + 256} {
		b, err := restore(o, n)
		if err != nil {
			t.Fatalf("size %d: %v", n, err)
		}
		checkPartials(t, o, b)
		full := b.Append(nil, o.leaves[n:min(n+300, size)]...)
		checkFull(t, o, full)
		checkPartials(t, o, b)
	}
}

func TestNewBuilderRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		size   id.Index
		widths []int
	}{
		{"tile in an empty tree", 0, []int{1}},
		{"no tile", 1, nil},
		{"tile too narrow", 3, []int{2}},
		{"tile too wide", 3, []int{4}},
		{"empty level given", 256, []int{0, 1}},
		{"levels exchanged", 256 + 2, []int{1, 2}},
		{"size above the limit", MaxSize + 1, []int{128}},
	} {
		var hashes [][]id.Hash
		for _, width := range c.widths {
			hashes = append(hashes, make([]id.Hash, width))
		}
		if _, err := NewBuilder(c.size, hashes...); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v, want %v", c.name, err, ErrMalformed)
		}
	}
}

// Clones of one builder share memory. The race detector checks that they never write to
// each other's.
func TestClonesGrowIndependently(t *testing.T) {
	o := newOracle(1000)
	for _, n := range []int{0, 3, 250, 255, 256, 600} {
		var b Builder
		b.Append(nil, o.leaves[:n]...)
		before := bytes.Clone(b.Partial(0))
		clones := []*Builder{b.Clone(), b.Clone(), b.Clone()}
		clones[2].Append(nil, testLeaves(300)...)
		var wg sync.WaitGroup
		for _, c := range clones[:2] {
			wg.Go(func() { c.Append(nil, o.leaves[n:]...) })
		}
		wg.Go(func() { b.Clone().Append(nil, testLeaves(17)...) })
		wg.Go(func() {
			if !bytes.Equal(before, b.Partial(0)) {
				t.Errorf("size %d: a reader saw another tile", n)
			}
		})
		wg.Wait()
		checkPartials(t, o, clones[0])
		checkPartials(t, o, clones[1])
		checkPartials(t, o, &b)
		if !bytes.Equal(before, b.Partial(0)) {
			t.Errorf("size %d: the original changed", n)
		}
	}
}

func TestSmallTreesAreSmall(t *testing.T) {
	leaves := testLeaves(10)
	got := testing.AllocsPerRun(10, func() {
		var b Builder
		b.Append(nil, leaves[0])
	})
	if got > 4 {
		t.Errorf("first leaf: got %v allocations", got)
	}
	var b Builder
	b.Append(nil, leaves...)
	if got, want := len(b.tiles[0].hashes), 16*32; got != want {
		t.Errorf("10 leaves: got %d bytes of partial tile, want %d", got, want)
	}
}

func BenchmarkBuilderAppend(b *testing.B) {
	leaves := testLeaves(256)
	var builder Builder
	var full []FullTile
	b.ReportAllocs()
	for b.Loop() {
		full = builder.Append(full[:0], leaves...)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/256, "ns/leaf")
}

// As the sequencer does it: clone, append a batch, compute the root, keep the clone.
func BenchmarkBuilderBatchOf64(b *testing.B) {
	leaves := testLeaves(64)
	builder := &Builder{}
	builder.Append(nil, testLeaves(100_003)...)
	var full []FullTile
	b.ReportAllocs()
	for b.Loop() {
		next := builder.Clone()
		full = next.Append(full[:0], leaves...)
		next.Root()
		builder = next
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/leaf")
}

func BenchmarkNodeHash(b *testing.B) {
	h := id.Hash{1}
	b.ReportAllocs()
	for b.Loop() {
		h = NodeHash(h, h)
	}
}

func BenchmarkLeafHash(b *testing.B) {
	entry := bytes.Repeat([]byte("x"), 168) // an entry of this service
	b.ReportAllocs()
	for b.Loop() {
		LeafHash(entry)
	}
}
