package tlog

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	formats "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/formats/proof"
	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/agentledger/agentledger/id"
)

// The tests of this file compare the mechanisms that are our own with the libraries. The
// benchmarks run both, one after the other; docs/internals/libraries.md has the results.

var rangeFactory = &compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}

func FuzzHashesAgreeWithTransparencyDevMerkle(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(bytes.Repeat([]byte("x"), 513))
	f.Fuzz(func(t *testing.T, entry []byte) {
		leaf := LeafHash(entry)
		if want := rfc6962.DefaultHasher.HashLeaf(entry); !bytes.Equal(leaf[:], want) {
			t.Errorf("leaf hash of %x: got %v, want %x", entry, leaf, want)
		}
		right := LeafHash(leaf[:])
		want := rfc6962.DefaultHasher.HashChildren(leaf[:], right[:])
		if got := NodeHash(leaf, right); !bytes.Equal(got[:], want) {
			t.Errorf("node hash: got %v, want %x", got, want)
		}
		h := newProofHasher(leaf, right)
		sums := [][]byte{h.HashChildren(leaf[:], right[:]), h.HashChildren(right[:], leaf[:])}
		if !bytes.Equal(sums[0], want) || !bytes.Equal(sums[1], rfc6962.DefaultHasher.HashChildren(right[:], leaf[:])) {
			t.Errorf("hashes of a check: got %x, want %x first", sums, want)
		}
		if !bytes.Equal(h.HashLeaf(entry), leaf[:]) || h.Size() != rfc6962.DefaultHasher.Size() {
			t.Error("hasher of a check: leaf hash or size differs")
		}
		if !bytes.Equal(h.EmptyRoot(), rfc6962.DefaultHasher.EmptyRoot()) {
			t.Error("hasher of a check: empty root differs")
		}
	})
}

// compareTrees appends the same leaves to a compact range, an edge and a builder, and
// compares all hashes of tiles, the right edge and the root.
func compareTrees(t *testing.T, leaves []id.Hash) {
	t.Helper()
	theirs, edge, builder := rangeFactory.NewEmptyRange(0), Edge{}, Builder{}
	tiles := map[compact.NodeID]id.Hash{}
	var full []FullTile
	for _, leaf := range leaves {
		edge.Append(leaf)
		full = builder.Append(full, leaf)
		err := theirs.Append(leaf[:], func(node compact.NodeID, hash []byte) {
			if node.Level%tileHeight == 0 {
				tiles[node] = id.Hash(hash)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := theirs.GetRootHash(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(leaves) == 0 {
		root = rfc6962.DefaultHasher.EmptyRoot()
	}
	of, built := edge.Root(), builder.Edge()
	if !bytes.Equal(of[:], root) || builder.Root() != edge.Root() {
		t.Errorf("root over %d leaves: got %v and %v, want %x", len(leaves), of, builder.Root(), root)
	}
	if got, want := raw(edge.Hashes()), theirs.Hashes(); !slices.EqualFunc(got, want, bytes.Equal) || !slices.Equal(edge.Hashes(), built.Hashes()) {
		t.Errorf("right edge over %d leaves: got %x, want %x", len(leaves), got, want)
	}
	for _, tile := range full { // the tiles of a level precede the tile above that contains their roots
		compareTile(t, tiles, tile.Level, tile.Index, tile.Hashes)
		if tile.Root != tiles[compact.NodeID{Level: uint(tile.Level+1) * tileHeight, Index: tile.Index}] {
			t.Errorf("tile %d/%d: root differs", tile.Level, tile.Index)
		}
	}
	for _, tile := range Partials(builder.Size()) {
		compareTile(t, tiles, tile.Level, tile.Index, builder.Partial(tile.Level))
	}
	if len(tiles) > 0 {
		t.Errorf("%d hashes of tiles are missing", len(tiles))
	}
}

// compareTile removes the hashes of a tile from tiles and compares them.
func compareTile(t *testing.T, tiles map[compact.NodeID]id.Hash, level uint8, index uint64, hashes []byte) {
	t.Helper()
	for i := range len(hashes) / hashSize {
		node := compact.NodeID{Level: uint(level) * tileHeight, Index: index*TileWidth + uint64(i)}
		if want := tiles[node]; !bytes.Equal(hashes[i*hashSize:(i+1)*hashSize], want[:]) {
			t.Errorf("tile %d/%d: hash %d: got %x, want %x", level, index, i, hashes[i*hashSize:(i+1)*hashSize], want)
		}
		delete(tiles, node)
	}
}

func TestTreesAgreeWithTransparencyDevMerkle(t *testing.T) {
	leaves := testLeaves(2*TileWidth*TileWidth + TileWidth + 3)
	for n := range 2*TileWidth + 3 {
		compareTrees(t, leaves[:n])
	}
	compareTrees(t, leaves[:TileWidth*TileWidth])
	compareTrees(t, leaves)
}

func FuzzTreesAgreeWithTransparencyDevMerkle(f *testing.F) {
	f.Add(uint64(1), uint16(1000))
	f.Fuzz(func(t *testing.T, seed uint64, size uint16) {
		random := rand.New(rand.NewPCG(seed, 6962))
		leaves := make([]id.Hash, size)
		for i := range leaves {
			leaves[i] = id.Hash{byte(random.Uint32()), byte(random.Uint32())}
		}
		compareTrees(t, leaves)
	})
}

func BenchmarkHashes(b *testing.B) {
	entry, h := bytes.Repeat([]byte("x"), 168), id.Hash{1}
	run(b, "leaf/ours", func() { LeafHash(entry) })
	run(b, "leaf/merkle", func() { rfc6962.DefaultHasher.HashLeaf(entry) })
	run(b, "node/ours", func() { h = NodeHash(h, h) })
	s := h[:]
	run(b, "node/merkle", func() { s = rfc6962.DefaultHasher.HashChildren(s, s) })
}

func run(b *testing.B, name string, f func()) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f()
		}
	})
}

// A compact range with a visitor that collects the hashes of tiles, with our hash functions,
// does what a builder does except for assembling the tiles.
func BenchmarkTrees(b *testing.B) {
	leaves := testLeaves(TileWidth)
	var builder Builder
	var full []FullTile
	run(b, "builder", func() { full = builder.Append(full[:0], leaves...) })
	ours := &compact.RangeFactory{Hash: func(left, right []byte) []byte {
		h := NodeHash(id.Hash(left), id.Hash(right))
		return h[:]
	}}
	count := 0
	for name, factory := range map[string]*compact.RangeFactory{"compact with our hashes": ours, "compact": rangeFactory} {
		tree := factory.NewEmptyRange(0)
		run(b, name, func() {
			for i := range leaves {
				_ = tree.Append(leaves[i][:], func(node compact.NodeID, _ []byte) {
					if node.Level%tileHeight == 0 {
						count++
					}
				})
			}
		})
	}
}

func BenchmarkTilePath(b *testing.B) {
	ours, theirs := Tile{Index: 1234067, Width: 5}, tlog.Tile{H: tileHeight, N: 1234067, W: 5}
	path, theirPath := ours.Path(), theirs.Path()
	run(b, "write/ours", func() { ours.Path() })
	run(b, "write/sumdb", func() { theirs.Path() })
	run(b, "parse/ours", func() { _, _ = ParseTilePath(path) })
	run(b, "parse/sumdb", func() { _, _ = tlog.ParseTilePath(theirPath) })
}

func BenchmarkProofText(b *testing.B) {
	ours := Proof{Index: 1234, Checkpoint: []byte(readVector(b).Checkpoint), Hashes: testLeaves(20)}
	theirs := proof.TLogProof{Index: 1234, Checkpoint: ours.Checkpoint}
	for _, h := range ours.Hashes {
		theirs.Hashes = append(theirs.Hashes, h)
	}
	if !bytes.Equal(ours.Text(), theirs.Marshal()) {
		b.Fatal("the texts differ")
	}
	run(b, "ours", func() { ours.Text() })
	run(b, "formats", func() { theirs.Marshal() })
}

func BenchmarkCosignatures(b *testing.B) {
	for _, w := range []WitnessSigner{newWitness(b, "w.example"), newMLDSAWitness(b, "m.example")} {
		n := cosignedNote(b, w)
		key, value := w.Key(), n.findSignature(w.key.name, w.key.hash).Value
		run(b, w.Key().Name()+"/ours", func() { _, _ = key.Cosigned(n) })
		run(b, w.Key().Name()+"/formats", func() {
			verifier, err := formats.NewVerifierForCosignatureV1(key.String())
			if err != nil || !verifier.Verify([]byte(n.Text), value) {
				b.Fatal("formats rejects the cosignature")
			}
		})
	}
}
