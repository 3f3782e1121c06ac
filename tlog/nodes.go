package tlog

import (
	"math/bits"

	"github.com/agentledger/agentledger/id"
)

// Nodes is a tile with the roots of its inner perfect subtrees, so that proofs need not hash them
// again. Above level 0 it contains all roots: 16 KiB for a full tile. A large log has very many
// tiles of level 0, so their Nodes contain only the roots over eight or more leaves: 2 KiB.
// Computing a lower root takes at most four hashes of the content. Nodes is immutable and safe for
// concurrent use.
type Nodes struct {
	tile Tile
	// hashes are in the order in which appending completes the subtrees, so the hashes of
	// a narrower version of the tile are a prefix.
	hashes []id.Hash
}

// leafGroupHeight is the height of the lowest subtrees that Nodes stores for level 0.
const leafGroupHeight = 3

// lowestStoredHeight returns the height of the lowest subtrees that the Nodes of a level store.
func lowestStoredHeight(level uint8) int {
	if level == 0 {
		return leafGroupHeight
	}
	return 0
}

// Tile returns the tile's name, with the width that the tile had when the nodes were computed.
func (n *Nodes) Tile() Tile { return n.tile }

// Bytes returns the memory size of n in bytes.
func (n *Nodes) Bytes() int { return 48 + cap(n.hashes)*hashSize }

// extendToTile returns the nodes of t, computed from its content. It copies the hashes of n, which
// is nil or a narrower version of t.
func (n *Nodes) extendToTile(t Tile, content []byte) *Nodes {
	lowest := lowestStoredHeight(t.Level)
	done, count := uint64(0), uint64(t.Width)>>lowest
	wider := &Nodes{tile: t, hashes: make([]id.Hash, 0, subtreePosition(count))}
	if n != nil {
		done = uint64(n.tile.Width) >> lowest
		wider.hashes = append(wider.hashes, n.hashes...)
	}
	for i := done; i < count; i++ {
		wider.appendSubtree(i, hashSubtree(content, lowest, i))
	}
	return wider
}

// appendSubtree adds the lowest subtree number i with the root h, and all higher subtrees that end
// with it.
func (n *Nodes) appendSubtree(i uint64, h id.Hash) {
	n.hashes = append(n.hashes, h)
	for height := lowestStoredHeight(n.tile.Level); i&1 == 1; height++ {
		h = NodeHash(n.subtreeRoot(height, i-1), h)
		n.hashes = append(n.hashes, h)
		i >>= 1
	}
}

// subtreeRoot returns the root of the perfect subtree number i of a height. n MUST contain it.
func (n *Nodes) subtreeRoot(height int, i uint64) id.Hash {
	above := height - lowestStoredHeight(n.tile.Level)
	return n.hashes[subtreePosition((i+1)<<above-1)+above]
}

// subtreePosition returns the position in hashes of the lowest subtree number i, which
// follows all subtrees that end before it.
func subtreePosition(i uint64) int { return int(2*i) - bits.OnesCount64(i) }

// belongsToTile reports whether n is of the tile t, regardless of the width.
func (n *Nodes) belongsToTile(t Tile) bool { return n.tile.Level == t.Level && n.tile.Index == t.Index }

// coversWidth reports whether n contains all hashes of the Nodes of t.
func (n *Nodes) coversWidth(t Tile) bool {
	lowest := lowestStoredHeight(t.Level)
	return n.tile.Width>>lowest >= t.Width>>lowest
}

// hashSubtree computes the root of the perfect subtree number i of a height from the
// content of its tile.
func hashSubtree(content []byte, height int, i uint64) id.Hash {
	if height == 0 {
		return id.Hash(content[i*hashSize : (i+1)*hashSize])
	}
	return NodeHash(hashSubtree(content, height-1, 2*i), hashSubtree(content, height-1, 2*i+1))
}
