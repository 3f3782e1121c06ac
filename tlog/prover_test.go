package tlog

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/id"
)

// checkTree compares root, inclusion and consistency with the oracle and runs
// the checks on them.
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

// With decoded tiles all pairs are affordable: the sizes around a full tile too.
func TestProofsOfAllTreesUpTo300EqualTheDefinition(t *testing.T) {
	o := newOracle(300)
	for n := 1; n <= 300; n++ {
		p := NewProver(decodeAll(t, o, n))
		for m := range n {
			inclusion, err := p.Inclusion(t.Context(), id.Index(m), id.Index(n))
			if err != nil || !slices.Equal(inclusion, o.path(m, 0, n)) {
				t.Fatalf("inclusion of %d in %d: %v", m, n, err)
			}
			consistency, err := p.Consistency(t.Context(), id.Index(m), id.Index(n))
			if err != nil || !slices.Equal(consistency, o.proof(m, n)) {
				t.Fatalf("consistency from %d to %d: %v", m, n, err)
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

// nodes is a NodeReader over decoded tiles.
type nodes map[Tile]*Nodes

func (r nodes) Nodes(_ context.Context, t Tile) (*Nodes, error) {
	if n, ok := r[t]; ok {
		return n, nil
	}
	return nil, errors.New("no such tile")
}

func decodeAll(t testing.TB, o *oracle, size int) nodes {
	all := nodes{}
	for level := range uint8(levels(id.Index(size))) {
		for index := 0; index*256 < size>>(8*level); index++ {
			tile := tileOf(level, uint64(index), id.Index(size))
			b, err := o.tiles(t, size).Tile(t.Context(), tile)
			if err != nil {
				t.Fatal(err)
			}
			if all[tile], err = DecodeTile(tile, b); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// wider answers every question about one tile with a wider version of it.
type wider struct{ full *Nodes }

func (r wider) Nodes(context.Context, Tile) (*Nodes, error) { return r.full, nil }

func TestProverTakesAWiderTileAndNoOther(t *testing.T) {
	o := newOracle(256)
	all := decodeAll(t, o, 256)
	full := all[Tile{Level: 0, Index: 0, Width: 256}]
	for n := 1; n < 256; n++ {
		got, err := NewProver(wider{full}).Root(t.Context(), id.Index(n))
		if err != nil || got != o.root(0, n) {
			t.Errorf("root at %d from the full tile: %v", n, err)
		}
	}
	if full.Root() != o.root(0, 256) || full.Tile().Width != 256 {
		t.Errorf("full tile: got %v", full.Tile())
	}
	narrow := wider{all[Tile{Level: 1, Index: 0, Width: 1}]}
	for _, tile := range []id.Index{2, 256, 300} {
		if _, err := NewProver(narrow).Inclusion(t.Context(), 0, tile); !errors.Is(err, ErrMalformed) {
			t.Errorf("another tile at size %d: got %v, want %v", tile, err, ErrMalformed)
		}
	}
}

// uniform is the tree of any size whose leaves are all the same.
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

// broken is a TileReader that fails or gives tiles of another length.
type broken struct {
	cut int
	err error
}

func (r broken) Tile(_ context.Context, t Tile) ([]byte, error) {
	return make([]byte, int(t.Width)*32-r.cut), r.err
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
		for _, from := range []id.Index{3, 4} {
			if _, err := Consistency(t.Context(), c.r, from, 5); !errors.Is(err, c.want) {
				t.Errorf("%s: consistency: got %v, want %v", c.name, err, c.want)
			}
		}
	}
	u := newUniform()
	_, tooLarge := Root(t.Context(), u, MaxSize+1)
	_, beyond := Inclusion(t.Context(), u, 5, 5)
	_, backwards := Consistency(t.Context(), u, 6, 5)
	for _, err := range []error{tooLarge, beyond, backwards} {
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
		{"decoded", func() func(i id.Index) ([]id.Hash, error) {
			p := NewProver(newDecodedUniform(b, u))
			return func(i id.Index) ([]id.Hash, error) { return p.Inclusion(b.Context(), i, size) }
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

// decodedUniform answers with tiles that were decoded before.
type decodedUniform [8]*Nodes

func newDecodedUniform(t testing.TB, u *uniform) *decodedUniform {
	d := &decodedUniform{}
	for level := range d {
		tile := Tile{Level: uint8(level), Width: 256}
		b, _ := u.Tile(t.Context(), tile)
		var err error
		if d[level], err = DecodeTile(tile, b); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func (d *decodedUniform) Nodes(_ context.Context, t Tile) (*Nodes, error) {
	n := *d[t.Level]
	n.tile.Index = t.Index
	return &n, nil
}
