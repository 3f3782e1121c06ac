package tlog

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/agentledger/agentledger/id"
)

// partialTile is the memory of a tile that fills from the left. Builders that are clones of each
// other share it. Each reads only the hashes below its own width, and a written hash never changes.
// The first builder that claims the next position gets it. The others continue in a copy.
type partialTile struct {
	used   atomic.Uint32 // claimed positions
	hashes []byte
}

// firstPositions is the capacity of the first tiles of a tree. It is small because many logs stay
// small.
const firstPositions = 4

func newPartialTile(hashes []id.Hash) *partialTile {
	p := &partialTile{hashes: make([]byte, 0, len(hashes)*hashSize)}
	for _, h := range hashes {
		p.hashes = append(p.hashes, h[:]...)
	}
	p.used.Store(uint32(len(hashes)))
	return p
}

// claimPosition claims position at. It reports whether the position is free and within the
// capacity.
func (p *partialTile) claimPosition(at int) bool {
	return p != nil && (at+1)*hashSize <= len(p.hashes) && p.used.CompareAndSwap(uint32(at), uint32(at+1))
}

// copyWithCapacity returns a copy of the first at hashes with position at claimed. The capacity of
// the first tile of a level doubles as it fills, up to a whole tile. Later tiles, in larger trees,
// get the capacity of a whole tile at once.
func (p *partialTile) copyWithCapacity(at int, later bool) *partialTile {
	size := hashSize * max(firstPositions, 1<<bits.Len(uint(at)))
	switch {
	case at > 0:
		size = max(size, len(p.hashes))
	case later:
		size = hashSize * TileWidth
	}
	next := &partialTile{hashes: make([]byte, size)}
	if at > 0 {
		copy(next.hashes, p.hashes[:at*hashSize])
	}
	next.used.Store(uint32(at + 1))
	return next
}

func (p *partialTile) writeHashAt(at int, h id.Hash) { copy(p.hashes[at*hashSize:], h[:]) }

// countTileLevels returns the number of tile levels that have at least one hash.
func countTileLevels(size id.Index) int {
	return (bits.Len64(uint64(size)) + tileHeight - 1) / tileHeight
}

// partialWidth returns the width of the partial tile of a level, or 0.
func partialWidth(size id.Index, level uint8) int {
	return int(uint64(size) >> (tileHeight * uint(level)) % TileWidth)
}

// Partials returns the partial tiles of a tree, from level 0 up. A level that ends with
// a full tile has none.
func Partials(size id.Index) []Tile {
	var tiles []Tile
	for level := range uint8(countTileLevels(size)) {
		if width := partialWidth(size, level); width > 0 {
			index := uint64(size) >> (tileHeight * (uint(level) + 1))
			tiles = append(tiles, Tile{Level: level, Index: index, Width: uint16(width)})
		}
	}
	return slices.Clip(tiles)
}
