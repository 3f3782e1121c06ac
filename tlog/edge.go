package tlog

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/agentledger/agentledger/id"
)

// Edge is the right edge of a tree: its size and the roots of its largest perfect subtrees, which
// is all that appending and computing the root need. The zero value is the empty tree. An Edge is
// not safe for concurrent use. Callers MUST copy it with Clone and not by assignment.
type Edge struct {
	size   id.Index
	hashes []id.Hash // one for each bit set in size, largest subtree first
}

// NewEdge returns the edge of a tree of size leaves. hashes are the roots of its perfect subtrees,
// one for each bit set in size, largest first. NewEdge copies them. The caller MUST compare Root
// with a known root.
func NewEdge(size id.Index, hashes []id.Hash) (Edge, error) {
	if size > MaxSize || len(hashes) != bits.OnesCount64(uint64(size)) {
		return Edge{}, fmt.Errorf("right edge: number of hashes: %w", ErrMalformed)
	}
	return Edge{size: size, hashes: slices.Clone(hashes)}, nil
}

// Append adds one leaf.
func (e *Edge) Append(leaf id.Hash) {
	root := e.mergeSubtrees(leaf, bits.TrailingZeros64(^uint64(e.size)))
	e.hashes = append(e.hashes, root)
	e.size++
}

// mergeSubtrees removes the last n subtrees from the edge. It returns the root over them and h,
// which is to their right.
func (e *Edge) mergeSubtrees(h id.Hash, n int) id.Hash {
	rest := len(e.hashes) - n
	for i := len(e.hashes) - 1; i >= rest; i-- {
		h = NodeHash(e.hashes[i], h)
	}
	e.hashes = e.hashes[:rest]
	return h
}

// Size returns the number of leaves.
func (e *Edge) Size() id.Index { return e.size }

// Root returns the root of the tree.
func (e *Edge) Root() id.Hash {
	if e.size == 0 {
		return EmptyRoot()
	}
	return foldSubtrees(e.hashes)
}

// Hashes returns a copy of the hashes in the form that NewEdge accepts.
func (e *Edge) Hashes() []id.Hash { return slices.Clone(e.hashes) }

// Clone returns an edge that grows independently of e.
func (e *Edge) Clone() Edge {
	capacity := bits.Len64(uint64(e.size)) + 1 // enough until the size has doubled
	return Edge{size: e.size, hashes: append(make([]id.Hash, 0, capacity), e.hashes...)}
}
