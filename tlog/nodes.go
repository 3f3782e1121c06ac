package tlog

import (
	"math/bits"

	"github.com/agentledger/agentledger/id"
)

// Nodes is a tile with the roots of the perfect subtrees inside it worked out,
// so that proofs take them instead of hashing. Above level 0 it has all of them:
// 16 KiB for a full tile. Of a tile of level 0, of which a large log has very
// many, it has those over eight leaves and more: 2 KiB. What is below takes four
// hashes at most to work out from the content. It is immutable and safe for
// concurrent use.
type Nodes struct {
	tile Tile
	// hashes are in the order in which appending completes the subtrees, so that
	// those of a narrower version of the tile stand at the beginning.
	hashes []id.Hash
}

// crownHeight is the height of the lowest subtrees that are kept of level 0.
const crownHeight = 3

// lowestOf returns the height in a tile of the lowest subtrees in its Nodes.
func lowestOf(level uint8) int {
	if level == 0 {
		return crownHeight
	}
	return 0
}

// Tile returns the tile's name, with the width from which the nodes were made.
func (n *Nodes) Tile() Tile { return n.tile }

// Bytes returns how much memory n takes.
func (n *Nodes) Bytes() int { return 48 + cap(n.hashes)*hashSize }

// grow returns the nodes of t, whose content is given. It takes over those of n,
// which is nil or a narrower version.
func (n *Nodes) grow(t Tile, content []byte) *Nodes {
	lowest := lowestOf(t.Level)
	done, count := uint64(0), uint64(t.Width)>>lowest
	wider := &Nodes{tile: t, hashes: make([]id.Hash, 0, place(count))}
	if n != nil {
		done = uint64(n.tile.Width) >> lowest
		wider.hashes = append(wider.hashes, n.hashes...)
	}
	for i := done; i < count; i++ {
		wider.complete(i, subtree(content, lowest, i))
	}
	return wider
}

// complete adds the lowest subtree number i with the root h, and all those above
// that it is the last part of.
func (n *Nodes) complete(i uint64, h id.Hash) {
	n.hashes = append(n.hashes, h)
	for height := lowestOf(n.tile.Level); i&1 == 1; height++ {
		h = NodeHash(n.at(height, i-1), h)
		n.hashes = append(n.hashes, h)
		i >>= 1
	}
}

// at returns the root of the perfect subtree number i of a height, which n has.
func (n *Nodes) at(height int, i uint64) id.Hash {
	above := height - lowestOf(n.tile.Level)
	return n.hashes[place((i+1)<<above-1)+above]
}

// place returns where the lowest subtree number i stands: behind those before it
// and all that they complete.
func place(i uint64) int { return int(2*i) - bits.OnesCount64(i) }

// is reports whether n is of the tile t, of any width.
func (n *Nodes) is(t Tile) bool { return n.tile.Level == t.Level && n.tile.Index == t.Index }

// covers reports whether n has all that the Nodes of t have.
func (n *Nodes) covers(t Tile) bool {
	lowest := lowestOf(t.Level)
	return n.tile.Width>>lowest >= t.Width>>lowest
}

// subtree works out the root of the perfect subtree number i of a height from
// the content of its tile.
func subtree(content []byte, height int, i uint64) id.Hash {
	if height == 0 {
		return id.Hash(content[i*hashSize : (i+1)*hashSize])
	}
	return NodeHash(subtree(content, height-1, 2*i), subtree(content, height-1, 2*i+1))
}
