package tlog

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/transparency-dev/merkle/proof"

	"github.com/agentledger/agentledger/id"
)

// CheckInclusion checks that leaf is the leaf hash at index in the tree of size
// leaves with that root; hashes is a proof as Inclusion makes it. The error wraps
// ErrProof.
func CheckInclusion(index, size id.Index, leaf id.Hash, hashes []id.Hash, root id.Hash) error {
	if index >= size || size > MaxSize {
		return fmt.Errorf("check inclusion: index or size out of range: %w", ErrProof)
	}
	if len(hashes) > maxHashes {
		return fmt.Errorf("check inclusion: number of hashes: %w", ErrProof)
	}
	h := newProofHasher(leaf, root, len(hashes))
	var room [maxHashes][]byte
	err := proof.VerifyInclusion(h, uint64(index), uint64(size), h.from[:], appendSlices(room[:0], hashes), h.to[:])
	if err != nil {
		return fmt.Errorf("check inclusion: %w", proofError(err))
	}
	return nil
}

// CheckConsistency checks that the tree of the first to leaves with the root
// toRoot extends that of the first from leaves with the root fromRoot; hashes is
// a proof as Consistency makes it. From size 0 and between equal sizes it has no
// hashes; the root of size 0 is EmptyRoot. The error wraps ErrProof.
func CheckConsistency(from, to id.Index, fromRoot, toRoot id.Hash, hashes []id.Hash) error {
	if from > to || to > MaxSize {
		return fmt.Errorf("check consistency: sizes out of range: %w", ErrProof)
	}
	if from == 0 && fromRoot != EmptyRoot() { // the library compares no root with that of the empty tree
		return fmt.Errorf("check consistency: another root: %w", ErrProof)
	}
	if len(hashes) > maxHashes+1 {
		return fmt.Errorf("check consistency: number of hashes: %w", ErrProof)
	}
	h := newProofHasher(fromRoot, toRoot, 2*len(hashes))
	var room [maxHashes + 1][]byte
	err := proof.VerifyConsistency(h, uint64(from), uint64(to), appendSlices(room[:0], hashes), h.from[:], h.to[:])
	if err != nil {
		return fmt.Errorf("check consistency: %w", proofError(err))
	}
	return nil
}

// proofError says what is wrong with a proof without the library's words, which
// hold values of the input.
func proofError(err error) error {
	if mismatch := (proof.RootMismatchError{}); errors.As(err, &mismatch) {
		return fmt.Errorf("another root: %w", ErrProof)
	}
	return fmt.Errorf("number of hashes: %w", ErrProof)
}

func appendSlices(slices [][]byte, hashes []id.Hash) [][]byte {
	for i := range hashes {
		slices = append(slices, hashes[i][:])
	}
	return slices
}

// proofHasher is the merkle.LogHasher of one check. It keeps every hash of the
// check in one piece of memory, because rfc6962.DefaultHasher allocates three times
// for each.
type proofHasher struct {
	from, to id.Hash // the check's leaf or older root, and its root
	node     [1 + 2*hashSize]byte
	sums     []id.Hash
}

func newProofHasher(from, to id.Hash, sums int) *proofHasher {
	h := &proofHasher{from: from, to: to, sums: make([]id.Hash, 0, sums)}
	h.node[0] = nodePrefix
	return h
}

func (h *proofHasher) HashChildren(left, right []byte) []byte {
	copy(h.node[1:1+hashSize], left)
	copy(h.node[1+hashSize:], right)
	h.sums = append(h.sums, sha256.Sum256(h.node[:]))
	return h.sums[len(h.sums)-1][:]
}

func (h *proofHasher) EmptyRoot() []byte { sum := EmptyRoot(); return sum[:] }

func (h *proofHasher) HashLeaf(leaf []byte) []byte { sum := LeafHash(leaf); return sum[:] }

func (h *proofHasher) Size() int { return hashSize }
