package tlog

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/agentledger/agentledger/id"
)

// partial is the memory of a tile that fills from the left. Builders that are
// clones of each other share it: each reads the hashes below its own width, and
// a hash once written stays. The place behind the last hash goes to whoever
// claims it first; the others go on in a copy.
type partial struct {
	used   atomic.Uint32 // places given away
	hashes []byte
}

// firstPlaces is the room of a tree's very first tiles, for the many logs that
// stay small.
const firstPlaces = 4

func newPartial(hashes []id.Hash) *partial {
	p := &partial{hashes: make([]byte, 0, len(hashes)*hashSize)}
	for _, h := range hashes {
		p.hashes = append(p.hashes, h[:]...)
	}
	p.used.Store(uint32(len(hashes)))
	return p
}

// claim reserves place at and reports whether it is free and there is room.
func (p *partial) claim(at int) bool {
	return p != nil && (at+1)*hashSize <= len(p.hashes) && p.used.CompareAndSwap(uint32(at), uint32(at+1))
}

// grow returns a copy of the first at hashes with place at claimed. The memory
// of a tree's first tile in a level doubles as it fills, up to a whole tile;
// later ones, in trees that showed themselves to be larger, are whole at once.
func (p *partial) grow(at int, later bool) *partial {
	size := hashSize * max(firstPlaces, 1<<bits.Len(uint(at)))
	switch {
	case at > 0:
		size = max(size, len(p.hashes))
	case later:
		size = hashSize * TileWidth
	}
	next := &partial{hashes: make([]byte, size)}
	if at > 0 {
		copy(next.hashes, p.hashes[:at*hashSize])
	}
	next.used.Store(uint32(at + 1))
	return next
}

func (p *partial) set(at int, h id.Hash) { copy(p.hashes[at*hashSize:], h[:]) }

// levels returns the number of tile levels of a tree: those with at least one hash.
func levels(size id.Index) int {
	return (bits.Len64(uint64(size)) + tileHeight - 1) / tileHeight
}

// widthAt returns the width of the partial tile of a level, 0 when there is none.
func widthAt(size id.Index, level uint8) int {
	return int(uint64(size) >> (tileHeight * uint(level)) % TileWidth)
}

// Partials returns the partial tiles of a tree, from level 0 up. Levels that
// end with a full tile have none.
func Partials(size id.Index) []Tile {
	var tiles []Tile
	for level := range uint8(levels(size)) {
		if width := widthAt(size, level); width > 0 {
			index := uint64(size) >> (tileHeight * (uint(level) + 1))
			tiles = append(tiles, Tile{Level: level, Index: index, Width: uint16(width)})
		}
	}
	return slices.Clip(tiles)
}
