package tlog

import (
	"fmt"

	"github.com/agentledger/agentledger/id"
)

// Nodes is a tile with the roots of all perfect subtrees inside it worked out,
// so that proofs take them instead of hashing: up to 16 KiB for a full tile. It
// is immutable and safe for concurrent use; caches hold tiles in this form.
type Nodes struct {
	tile   Tile
	begin  [tileHeight + 1]uint16 // where each height begins in hashes
	hashes []id.Hash              // height 0 from the left, then height 1, up to tileHeight
}

// DecodeTile reads the content of a tile, t.Width hashes of 32 bytes.
func DecodeTile(t Tile, hashes []byte) (*Nodes, error) {
	if t.Level > MaxLevel || t.Width == 0 || t.Width > TileWidth || len(hashes) != int(t.Width)*hashSize {
		return nil, fmt.Errorf("decode tile: length: %w", ErrMalformed)
	}
	n := &Nodes{tile: t}
	total := uint16(0)
	for height := range n.begin {
		n.begin[height] = total
		total += t.Width >> height
	}
	n.hashes = make([]id.Hash, total)
	for i := range int(t.Width) {
		n.hashes[i] = id.Hash(hashes[i*hashSize:])
	}
	for height := 1; height <= tileHeight; height++ {
		n.combine(height)
	}
	return n, nil
}

// combine works out one height from the one below.
func (n *Nodes) combine(height int) {
	below := n.hashes[n.begin[height-1]:]
	here := n.hashes[n.begin[height]:]
	for i := range int(n.tile.Width >> height) {
		here[i] = NodeHash(below[2*i], below[2*i+1])
	}
}

// Tile returns the tile's name.
func (n *Nodes) Tile() Tile { return n.tile }

// Root returns the root over the hashes of the tile: for a full tile its hash
// in the level above.
func (n *Nodes) Root() id.Hash {
	var subtrees []id.Hash
	begin := uint64(0)
	for height := tileHeight; height >= 0; height-- {
		if n.tile.Width>>height&1 == 1 {
			subtrees = append(subtrees, n.at(height, begin>>height))
			begin += 1 << height
		}
	}
	return fold(subtrees)
}

// at returns the root of the perfect subtree number i of a height.
func (n *Nodes) at(height int, i uint64) id.Hash { return n.hashes[uint64(n.begin[height])+i] }

// covers reports whether n can stand for t: the same tile, at least as wide.
func (n *Nodes) covers(t Tile) bool {
	return n.tile.Level == t.Level && n.tile.Index == t.Index && n.tile.Width >= t.Width
}
