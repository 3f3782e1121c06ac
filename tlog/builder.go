package tlog

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/agentledger/agentledger/id"
)

// FullTile is a tile that will never change again.
type FullTile struct {
	Level  uint8
	Index  uint64
	Hashes []byte  // TileWidth hashes of 32 bytes; shared, not to be written to
	Root   id.Hash // the root over them: hash number Index of level Level+1
}

// Builder grows a tree and hands out each tile as it fills. The zero value is
// the empty tree. It holds the right edge and the partial tile of each level:
// 56 bytes, 32 for each bit set in the size and 32 (rounded up to a power of
// two) for each hash of a partial tile.
//
// A Builder is not safe for concurrent use, and a copy is made by Clone, not by
// assignment. Clones are cheap and independent of each other, also in different
// goroutines: whoever builds tentatively appends to a clone and keeps it or
// drops it.
type Builder struct {
	edge  Edge
	tiles []*partial // by level; what is there beyond the width of the level's tile is of no meaning
}

// NewBuilder returns a builder for a tree of size leaves. hashes[i] are the
// hashes of the tile Partials(size)[i]: at level 0 the hashes of the last
// leaves, above it the roots of the last full tiles of the level below. It
// takes copies. The caller compares Root with the root that it knows.
func NewBuilder(size id.Index, hashes ...[]id.Hash) (*Builder, error) {
	tiles := Partials(size)
	if size > MaxSize || len(hashes) != len(tiles) {
		return nil, fmt.Errorf("restore tree: number of partial tiles: %w", ErrMalformed)
	}
	b := &Builder{edge: Edge{size: size}, tiles: make([]*partial, levels(size))}
	for i, t := range slices.Backward(tiles) {
		if len(hashes[i]) != int(t.Width) {
			return nil, fmt.Errorf("restore tree: hashes of level %d: %w", t.Level, ErrMalformed)
		}
		var part Edge
		for _, h := range hashes[i] {
			part.Append(h)
		}
		b.edge.hashes = append(b.edge.hashes, part.hashes...)
		b.tiles[t.Level] = newPartial(hashes[i])
	}
	return b, nil
}

// Append adds leaves in their order, appends the tiles that they fill to full,
// a level's tiles before the tile above that holds their roots, and returns it.
func (b *Builder) Append(full []FullTile, leaves ...id.Hash) []FullTile {
	for _, leaf := range leaves {
		full = b.add(full, leaf)
	}
	return full
}

// add puts the leaf into its tile and, as long as that fills a tile, the tile's
// root into the tile above.
func (b *Builder) add(full []FullTile, h id.Hash) []FullTile {
	level := 0
	position := uint64(b.edge.size) // of h in its level
	for {
		b.put(level, position, h)
		h = b.edge.merge(h, min(bits.TrailingZeros64(^position), tileHeight))
		if position%TileWidth != TileWidth-1 {
			break
		}
		position /= TileWidth
		full = append(full, FullTile{Level: uint8(level), Index: position, Hashes: b.tiles[level].hashes, Root: h})
		level++
	}
	b.edge.hashes = append(b.edge.hashes, h)
	b.edge.size++
	return full
}

// put writes a hash into the partial tile of a level.
func (b *Builder) put(level int, position uint64, h id.Hash) {
	if level == len(b.tiles) {
		b.tiles = append(b.tiles, nil)
	}
	at := int(position % TileWidth)
	if !b.tiles[level].claim(at) {
		b.tiles[level] = b.tiles[level].grow(at, position >= TileWidth)
	}
	b.tiles[level].set(at, h)
}

// Size returns the number of leaves.
func (b *Builder) Size() id.Index { return b.edge.size }

// Root returns the root of the tree.
func (b *Builder) Root() id.Hash { return b.edge.Root() }

// Edge returns the right edge, independent of b.
func (b *Builder) Edge() Edge { return b.edge.Clone() }

// Partial returns the hashes of the partial tile of a level as tlog-tiles
// serves them, nil when the level has none. They are never written to again and
// must not be by the caller; a prefix is the tile's narrower version.
func (b *Builder) Partial(level uint8) []byte {
	width := widthAt(b.edge.size, level)
	if width == 0 {
		return nil
	}
	end := width * hashSize
	return b.tiles[level].hashes[:end:end]
}

// Clone returns a builder that grows independently of b. It copies no tile.
func (b *Builder) Clone() *Builder {
	return &Builder{edge: b.edge.Clone(), tiles: slices.Clone(b.tiles)}
}
