package tlog

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/agentledger/agentledger/id"
)

// FullTile is a tile with all its hashes. It never changes.
type FullTile struct {
	Level  uint8
	Index  uint64
	Hashes []byte  // TileWidth hashes of 32 bytes; shared, so callers MUST NOT write to it
	Root   id.Hash // the root over Hashes: hash number Index of level Level+1
}

// Builder grows a tree and returns each tile as it fills. The zero value is the empty tree. A
// Builder contains the right edge and the partial tile of each level: 56 bytes, 32 for each bit set
// in the size, and 32 (rounded up to a power of two) for each hash of a partial tile.
//
// A Builder is not safe for concurrent use. Callers MUST copy it with Clone and not by assignment.
// Clones are cheap and independent of each other, even in different goroutines. For example, a
// batch that may fail is appended to a clone, which is then kept or discarded.
type Builder struct {
	edge  Edge
	tiles []*partialTile // by level; bytes beyond the width of the level's tile are meaningless
}

// NewBuilder returns a builder for a tree of size leaves. hashes[i] are the hashes of the tile
// Partials(size)[i]: at level 0 the hashes of the last leaves, at higher levels the roots of the
// last full tiles of the level below. NewBuilder copies them. The caller MUST compare Root with a
// known root, because any hashes form a tree.
func NewBuilder(size id.Index, hashes ...[]id.Hash) (*Builder, error) {
	tiles := Partials(size)
	if size > MaxSize || len(hashes) != len(tiles) {
		return nil, fmt.Errorf("restore tree: number of partial tiles: %w", ErrMalformed)
	}
	b := &Builder{edge: Edge{size: size}, tiles: make([]*partialTile, countTileLevels(size))}
	for i, t := range slices.Backward(tiles) {
		if len(hashes[i]) != int(t.Width) {
			return nil, fmt.Errorf("restore tree: hashes of level %d: %w", t.Level, ErrMalformed)
		}
		var part Edge
		for _, h := range hashes[i] {
			part.Append(h)
		}
		b.edge.hashes = append(b.edge.hashes, part.hashes...)
		b.tiles[t.Level] = newPartialTile(hashes[i])
	}
	return b, nil
}

// Append adds leaves in order. It appends the tiles that they fill to full and returns the result.
// The tiles of a level precede the tile above that contains their roots.
func (b *Builder) Append(full []FullTile, leaves ...id.Hash) []FullTile {
	for _, leaf := range leaves {
		full = b.appendLeaf(full, leaf)
	}
	return full
}

// appendLeaf writes the leaf into its tile. If that fills the tile, it writes the tile's root into
// the tile above, and so on.
func (b *Builder) appendLeaf(full []FullTile, h id.Hash) []FullTile {
	level := 0
	position := uint64(b.edge.size) // position of h in its level
	for {
		b.writeTileHash(level, position, h)
		h = b.edge.mergeSubtrees(h, min(bits.TrailingZeros64(^position), tileHeight))
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

// writeTileHash writes a hash into the partial tile of a level.
func (b *Builder) writeTileHash(level int, position uint64, h id.Hash) {
	if level == len(b.tiles) {
		b.tiles = append(b.tiles, nil)
	}
	at := int(position % TileWidth)
	if !b.tiles[level].claimPosition(at) {
		b.tiles[level] = b.tiles[level].copyWithCapacity(at, position >= TileWidth)
	}
	b.tiles[level].writeHashAt(at, h)
}

// Size returns the number of leaves.
func (b *Builder) Size() id.Index { return b.edge.size }

// Root returns the root of the tree.
func (b *Builder) Root() id.Hash { return b.edge.Root() }

// Edge returns a copy of the right edge.
func (b *Builder) Edge() Edge { return b.edge.Clone() }

// Partial returns the hashes of the partial tile of a level as tlog-tiles serves them, or nil if
// the level has none. The hashes never change, and callers MUST NOT write to them. A prefix is the
// narrower version of the tile.
func (b *Builder) Partial(level uint8) []byte {
	width := partialWidth(b.edge.size, level)
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
