package tlog

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/id"
)

// checkTree compares root, inclusion and consistency with the oracle and verifies the
// proofs.
func checkTree(t *testing.T, o *oracle, m, n int) {
	t.Helper()
	ctx := t.Context()
	root, err := Root(ctx, o.tiles(t, n), id.Index(n))
	if err != nil || root != o.root(0, n) {
		t.Fatalf("root at %d: got %v, %v", n, root, err)
	}
	consistency, err := Consistency(ctx, o.tiles(t, n), id.Index(m), id.Index(n))
	if err != nil || !slices.Equal(consistency, o.proof(m, n)) {
		t.Fatalf("consistency from %d to %d: got %v, %v, want %v", m, n, consistency, err, o.proof(m, n))
	}
	if err := CheckConsistency(id.Index(m), id.Index(n), o.root(0, m), root, consistency); err != nil {
		t.Fatalf("from %d to %d: %v", m, n, err)
	}
	if m == n {
		return
	}
	inclusion, err := Inclusion(ctx, o.tiles(t, n), id.Index(m), id.Index(n))
	if err != nil || !slices.Equal(inclusion, o.path(m, 0, n)) {
		t.Fatalf("inclusion of %d in %d: got %v, %v, want %v", m, n, inclusion, err, o.path(m, 0, n))
	}
	if err := CheckInclusion(id.Index(m), id.Index(n), o.leaves[m], inclusion, root); err != nil {
		t.Fatalf("%d in %d: %v", m, n, err)
	}
}

func TestProofsOfSmallTreesEqualTheDefinition(t *testing.T) {
	o := newOracle(70)
	for n := range 71 {
		for m := range n + 1 {
			checkTree(t, o, m, n)
		}
	}
}

// The cache fills while the log grows, as in a service, and its tiles get wider. All pairs
// of sizes, including those around a full tile.
func TestProofsOfAllTreesUpTo300EqualTheDefinition(t *testing.T) {
	o := newOracle(300)
	nodes := cache{}
	for n := 1; n <= 300; n++ {
		for m := range n {
			p := NewProver(o.tiles(t, n), nodes)
			inclusion, err := p.Inclusion(t.Context(), id.Index(m), id.Index(n))
			if err != nil || !slices.Equal(inclusion, o.path(m, 0, n)) {
				t.Fatalf("inclusion of %d in %d: %v", m, n, err)
			}
			consistency, err := p.Consistency(t.Context(), id.Index(m), id.Index(n))
			if err != nil || !slices.Equal(consistency, o.proof(m, n)) {
				t.Fatalf("consistency from %d to %d: %v", m, n, err)
			}
			if leaf, err := p.Leaf(t.Context(), id.Index(m), id.Index(n)); err != nil || leaf != o.leaves[m] {
				t.Fatalf("leaf %d in %d: got %v, %v, want %v", m, n, leaf, err, o.leaves[m])
			}
			if root, err := p.Root(t.Context(), id.Index(n)); err != nil || root != o.root(0, n) {
				t.Fatalf("root at %d: got %v, %v", n, root, err)
			}
			if err := CheckInclusion(id.Index(m), id.Index(n), o.leaves[m], inclusion, o.root(0, n)); err != nil {
				t.Fatalf("%d in %d: %v", m, n, err)
			}
			if err := CheckConsistency(id.Index(m), id.Index(n), o.root(0, m), o.root(0, n), consistency); err != nil {
				t.Fatalf("from %d to %d: %v", m, n, err)
			}
		}
	}
}

// One prover and one cache for trees of all sizes, in any order.
func TestProofsOfLargerTreesByOneProverEqualTheDefinition(t *testing.T) {
	const size = 1<<16 + 1000
	o := newOracle(size)
	random := rand.New(rand.NewPCG(6962, 5))
	nodes := cache{}
	for range 20 {
		p := NewProver(everyWidth{t, o, size}, nodes)
		for range 20 {
			n := 1 + random.IntN(size)
			m := random.IntN(n)
			inclusion, err := p.Inclusion(t.Context(), id.Index(m), id.Index(n))
			if err != nil || !slices.Equal(inclusion, o.path(m, 0, n)) {
				t.Fatalf("inclusion of %d in %d: %v", m, n, err)
			}
			consistency, err := p.Consistency(t.Context(), id.Index(m), id.Index(n))
			if err != nil || !slices.Equal(consistency, o.proof(m, n)) {
				t.Fatalf("consistency from %d to %d: %v", m, n, err)
			}
			if leaf, err := p.Leaf(t.Context(), id.Index(m), id.Index(n)); err != nil || leaf != o.leaves[m] {
				t.Fatalf("leaf %d in %d: got %v, %v, want %v", m, n, leaf, err, o.leaves[m])
			}
		}
	}
}

func TestProofsOfLargerTreesEqualTheDefinition(t *testing.T) {
	const size = 1<<16 + 1000
	o := newOracle(size)
	random := rand.New(rand.NewPCG(6962, 2))
	for _, n := range []int{511, 512, 513, 65535, 65536, 65537, 65536 + 255, 65536 + 256, size} {
		for _, m := range []int{0, 1, 255, 256, 257, n / 2, n - 1, n, random.IntN(n)} {
			checkTree(t, o, min(m, n), n)
		}
	}
	for range 40 {
		n := 1 + random.IntN(size)
		checkTree(t, o, random.IntN(n+1), n)
	}
}

// cache stores the widest version of each tile.
type cache map[[2]uint64]*Nodes

func (c cache) Nodes(level uint8, index uint64) *Nodes { return c[[2]uint64{uint64(level), index}] }

func (c cache) Keep(n *Nodes) {
	key := [2]uint64{uint64(n.Tile().Level), n.Tile().Index}
	if before := c[key]; before == nil || before.Tile().Width < n.Tile().Width {
		c[key] = n
	}
}

// everyWidth reads tiles of a tree at every width that they ever had.
type everyWidth struct {
	t    testing.TB
	o    *oracle
	size int
}

func (r everyWidth) Tile(ctx context.Context, want Tile) ([]byte, error) {
	hashes, err := r.o.tiles(r.t, r.size).Tile(ctx, widestTileAt(want.Level, want.Index, id.Index(r.size)))
	return hashes[:min(len(hashes), 32*int(want.Width))], err
}

func (r everyWidth) Leaves(ctx context.Context, begin, end id.Index) ([]byte, error) {
	return r.o.tiles(r.t, r.size).Leaves(ctx, begin, end)
}

// full is a cache that returns the same nodes for every tile.
type full struct{ nodes *Nodes }

func (f full) Nodes(uint8, uint64) *Nodes { return f.nodes }

func (f full) Keep(*Nodes) {}

func TestProverAcceptsOnlyAWiderTile(t *testing.T) {
	o := newOracle(256)
	whole := Tile{Level: 0, Index: 0, Width: 256}
	hashes, err := o.tiles(t, 256).Tile(t.Context(), whole)
	if err != nil {
		t.Fatal(err)
	}
	nodes := (*Nodes)(nil).extendToTile(whole, hashes)
	for n := 1; n < 256; n++ {
		got, err := NewProver(o.tiles(t, n), full{nodes}).Root(t.Context(), id.Index(n))
		if err != nil || got != o.root(0, n) {
			t.Errorf("root at %d from the full tile: %v", n, err)
		}
	}
	other := newOracle(600)
	for _, size := range []id.Index{512, 600} {
		if _, err := NewProver(other.tiles(t, int(size)), full{nodes}).Inclusion(t.Context(), 0, size); !errors.Is(err, ErrMalformed) {
			t.Errorf("another tile at size %d: got %v, want %v", size, err, ErrMalformed)
		}
	}
}

// uniform is a tree of any size whose leaves are all equal.
type uniform struct{ heights [64]id.Hash }

func newUniform() *uniform {
	u := &uniform{}
	u.heights[0] = LeafHash([]byte("the same"))
	for i := 1; i < len(u.heights); i++ {
		u.heights[i] = NodeHash(u.heights[i-1], u.heights[i-1])
	}
	return u
}

func (u *uniform) Tile(_ context.Context, t Tile) ([]byte, error) {
	return slices.Repeat(u.heights[8*t.Level][:], int(t.Width)), nil
}

func (u *uniform) Leaves(_ context.Context, begin, end id.Index) ([]byte, error) {
	return slices.Repeat(u.heights[0][:], int(end-begin)), nil
}

func TestProofsOfHugeTrees(t *testing.T) {
	u := newUniform()
	random := rand.New(rand.NewPCG(6962, 3))
	for i := range 60 {
		to := MaxSize - id.Index(random.Uint64()>>(1+i))
		from := id.Index(random.Uint64N(uint64(to)))
		root, err := Root(t.Context(), u, to)
		if err != nil {
			t.Fatal(err)
		}
		fromRoot, err := Root(t.Context(), u, from)
		if err != nil {
			t.Fatal(err)
		}
		inclusion, err := Inclusion(t.Context(), u, from, to)
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckInclusion(from, to, u.heights[0], inclusion, root); err != nil {
			t.Errorf("%d in %d: %v", from, to, err)
		}
		consistency, err := Consistency(t.Context(), u, from, to)
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckConsistency(from, to, fromRoot, root, consistency); err != nil {
			t.Errorf("from %d to %d: %v", from, to, err)
		}
	}
}

// broken is a TileReader that fails or returns tiles of another length.
type broken struct {
	cut int
	err error
}

func (r broken) Tile(_ context.Context, t Tile) ([]byte, error) {
	return make([]byte, int(t.Width)*32-r.cut), r.err
}

func (r broken) Leaves(_ context.Context, begin, end id.Index) ([]byte, error) {
	return make([]byte, int(end-begin)*32-r.cut), r.err
}

func TestProverRefuses(t *testing.T) {
	lost := errors.New("lost")
	for _, c := range []struct {
		name string
		r    TileReader
		want error
	}{
		{"reader's error", broken{err: lost}, lost},
		{"tile cut by a byte", broken{cut: 1}, ErrMalformed},
		{"tile longer by a hash", broken{cut: -32}, ErrMalformed},
	} {
		if _, err := Root(t.Context(), c.r, 5); !errors.Is(err, c.want) {
			t.Errorf("%s: root: got %v, want %v", c.name, err, c.want)
		}
		if _, err := Inclusion(t.Context(), c.r, 2, 5); !errors.Is(err, c.want) {
			t.Errorf("%s: inclusion: got %v, want %v", c.name, err, c.want)
		}
		if _, err := Inclusion(t.Context(), c.r, 2, 500); !errors.Is(err, c.want) {
			t.Errorf("%s: inclusion in a larger tree: got %v, want %v", c.name, err, c.want)
		}
		if _, err := NewProver(c.r, nil).Leaf(t.Context(), 2, 5); !errors.Is(err, c.want) {
			t.Errorf("%s: leaf: got %v, want %v", c.name, err, c.want)
		}
		for _, from := range []id.Index{3, 4} {
			if _, err := Consistency(t.Context(), c.r, from, 5); !errors.Is(err, c.want) {
				t.Errorf("%s: consistency: got %v, want %v", c.name, err, c.want)
			}
		}
	}
	u := newUniform()
	_, tooLarge := Root(t.Context(), u, MaxSize+1)
	_, beyond := Inclusion(t.Context(), u, 5, 5)
	_, noLeaf := NewProver(u, nil).Leaf(t.Context(), 5, 5)
	_, backwards := Consistency(t.Context(), u, 6, 5)
	for _, err := range []error{tooLarge, beyond, noLeaf, backwards} {
		if !errors.Is(err, ErrMalformed) {
			t.Errorf("out of range: got %v, want %v", err, ErrMalformed)
		}
	}
}

func BenchmarkInclusion(b *testing.B) {
	const size = 1<<20 - 77
	u := newUniform()
	for _, c := range []struct {
		name  string
		prove func(i id.Index) ([]id.Hash, error)
	}{
		{"tiles", func(i id.Index) ([]id.Hash, error) { return Inclusion(b.Context(), u, i, size) }},
		{"cached", func() func(i id.Index) ([]id.Hash, error) {
			r, nodes := newStoredUniform(b, u), cache{}
			for i := range id.Index(size / TileWidth) {
				if _, err := NewProver(r, nodes).Inclusion(b.Context(), i*TileWidth, size); err != nil {
					b.Fatal(err)
				}
			}
			return func(i id.Index) ([]id.Hash, error) { return NewProver(r, nodes).Inclusion(b.Context(), i, size) }
		}()},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			i := id.Index(0)
			for b.Loop() {
				i = (i + 7919) % size
				if _, err := c.prove(i); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// storedUniform is uniform with tiles that were computed before.
type storedUniform [8][]byte

func newStoredUniform(t testing.TB, u *uniform) *storedUniform {
	s := &storedUniform{}
	for level := range s {
		s[level], _ = u.Tile(t.Context(), Tile{Level: uint8(level), Width: 256})
	}
	return s
}

func (s *storedUniform) Tile(_ context.Context, t Tile) ([]byte, error) {
	return s[t.Level][:32*int(t.Width)], nil
}

func (s *storedUniform) Leaves(_ context.Context, begin, end id.Index) ([]byte, error) {
	return s[0][:32*int(end-begin)], nil
}
