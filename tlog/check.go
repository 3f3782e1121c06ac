package tlog

import (
	"fmt"
	"math/bits"

	"github.com/agentledger/agentledger/id"
)

// CheckInclusion checks that leaf is the leaf hash at index in the tree of size
// leaves with that root; proof is as Inclusion makes it. The error wraps ErrProof.
func CheckInclusion(index, size id.Index, leaf id.Hash, proof []id.Hash, root id.Hash) error {
	if index >= size || size > MaxSize {
		return fmt.Errorf("check inclusion: index or size out of range: %w", ErrProof)
	}
	climb := newClimb(uint64(index), uint64(size-1), proof)
	got := leaf
	for climb.next() {
		if climb.fromLeft {
			got = NodeHash(climb.sibling, got)
		} else {
			got = NodeHash(got, climb.sibling)
		}
	}
	if !climb.complete() {
		return fmt.Errorf("check inclusion: number of hashes: %w", ErrProof)
	}
	if got != root {
		return fmt.Errorf("check inclusion: another root: %w", ErrProof)
	}
	return nil
}

// CheckConsistency checks that the tree of the first to leaves with the root
// toRoot extends that of the first from leaves with the root fromRoot; proof is
// as Consistency makes it. From size 0 and between equal sizes it has no
// hashes; the root of size 0 is EmptyRoot. The error wraps ErrProof.
func CheckConsistency(from, to id.Index, fromRoot, toRoot id.Hash, proof []id.Hash) error {
	if from > to || to > MaxSize {
		return fmt.Errorf("check consistency: sizes out of range: %w", ErrProof)
	}
	if from == 0 || from == to {
		return checkTrivial(from, to, fromRoot, toRoot, proof)
	}
	height := bits.TrailingZeros64(uint64(from))
	seed := fromRoot // a perfect tree is itself the subtree that the path begins at
	if from != 1<<height {
		if len(proof) == 0 {
			return fmt.Errorf("check consistency: number of hashes: %w", ErrProof)
		}
		seed, proof = proof[0], proof[1:]
	}
	climb := newClimb(uint64(from-1)>>height, uint64(to-1)>>height, proof)
	older, newer := climb.roots(seed)
	if !climb.complete() {
		return fmt.Errorf("check consistency: number of hashes: %w", ErrProof)
	}
	if older != fromRoot || newer != toRoot {
		return fmt.Errorf("check consistency: another root: %w", ErrProof)
	}
	return nil
}

// checkTrivial checks the cases that need no hashes.
func checkTrivial(from, to id.Index, fromRoot, toRoot id.Hash, proof []id.Hash) error {
	if len(proof) > 0 {
		return fmt.Errorf("check consistency: number of hashes: %w", ErrProof)
	}
	if from == 0 && fromRoot != EmptyRoot() || from == to && fromRoot != toRoot {
		return fmt.Errorf("check consistency: another root: %w", ErrProof)
	}
	return nil
}

// climb goes from a node up to the root and takes from a proof the sibling of
// each node on the way that has one.
type climb struct {
	node, last uint64 // the node and the last one of its row
	proof      []id.Hash
	short      bool // the proof ended too early

	sibling  id.Hash
	fromLeft bool // the sibling stands to the left
}

func newClimb(node, last uint64, proof []id.Hash) *climb {
	return &climb{node: node, last: last, proof: proof}
}

// next goes up past the next sibling and reports whether there was one.
func (c *climb) next() bool {
	for c.last > 0 {
		has := c.node^1 <= c.last
		c.fromLeft = c.node&1 == 1
		c.node, c.last = c.node>>1, c.last>>1
		if !has {
			continue
		}
		if len(c.proof) == 0 {
			c.short = true
			return false
		}
		c.sibling, c.proof = c.proof[0], c.proof[1:]
		return true
	}
	return false
}

// complete reports whether the whole proof was used and reached the root.
func (c *climb) complete() bool { return !c.short && len(c.proof) == 0 }

// roots returns the roots that a consistency proof leads to from the last
// perfect subtree of the older tree: what stands to the left is in both trees,
// what stands to the right only in the newer one.
func (c *climb) roots(seed id.Hash) (older, newer id.Hash) {
	older, newer = seed, seed
	for c.next() {
		if c.fromLeft {
			older = NodeHash(c.sibling, older)
			newer = NodeHash(c.sibling, newer)
		} else {
			newer = NodeHash(newer, c.sibling)
		}
	}
	return older, newer
}
