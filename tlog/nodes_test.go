package tlog

import (
	"math/rand/v2"
	"testing"
)

// However often a tile was extended while it filled, its nodes are the roots of its
// subtrees.
func TestNodesOfATileThatGrows(t *testing.T) {
	o := newOracle(TileWidth)
	whole, err := o.tiles(t, TileWidth).Tile(t.Context(), Tile{Width: TileWidth})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(6962, 6))
	for _, level := range []uint8{0, 1} {
		for range 20 {
			var n *Nodes
			for width := 0; width < TileWidth; {
				width += 1 + random.IntN(min(40, TileWidth-width))
				n = n.extendToTile(Tile{Level: level, Index: 5, Width: uint16(width)}, whole[:32*width])
				checkNodes(t, n, o)
			}
		}
	}
}

func checkNodes(t *testing.T, n *Nodes, o *oracle) {
	t.Helper()
	for height := lowestStoredHeight(n.tile.Level); height <= tileHeight; height++ {
		for i := range int(n.tile.Width >> height) {
			if got, want := n.subtreeRoot(height, uint64(i)), o.root(i<<height, (i+1)<<height); got != want {
				t.Fatalf("%v: node %d of height %d: got %v, want %v", n.tile, i, height, got, want)
			}
		}
	}
}

func TestSubtreeOfATile(t *testing.T) {
	o := newOracle(TileWidth)
	hashes, err := o.tiles(t, TileWidth).Tile(t.Context(), Tile{Width: TileWidth})
	if err != nil {
		t.Fatal(err)
	}
	for height := range tileHeight + 1 {
		for i := range TileWidth >> height {
			if got, want := hashSubtree(hashes, height, uint64(i)), o.root(i<<height, (i+1)<<height); got != want {
				t.Errorf("node %d of height %d: got %v, want %v", i, height, got, want)
			}
		}
	}
}

func TestBytesOfNodes(t *testing.T) {
	for _, c := range []struct {
		tile Tile
		want int
	}{
		{Tile{Level: 0, Width: 7}, 48},
		{Tile{Level: 0, Width: 8}, 48 + 32},
		{Tile{Level: 0, Width: 256}, 48 + 63*32},
		{Tile{Level: 1, Width: 1}, 48 + 32},
		{Tile{Level: 1, Width: 256}, 48 + 511*32},
	} {
		n := (*Nodes)(nil).extendToTile(c.tile, make([]byte, 32*int(c.tile.Width)))
		if got := n.Bytes(); got != c.want || len(n.hashes) != cap(n.hashes) {
			t.Errorf("%v: got %d bytes, want %d; %d hashes of %d", c.tile, got, c.want, len(n.hashes), cap(n.hashes))
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for level, name := range []string{"crown", "whole"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			t := Tile{Level: uint8(level), Width: TileWidth}
			hashes := make([]byte, 32*TileWidth)
			for b.Loop() {
				(*Nodes)(nil).extendToTile(t, hashes)
			}
		})
	}
}
