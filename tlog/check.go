package tlog

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/transparency-dev/merkle/proof"

	"github.com/agentledger/agentledger/id"
)

// CheckInclusion checks that leaf is the leaf hash at index in the tree of size leaves with that
// root. hashes is a proof as returned by Inclusion. The error wraps ErrProof.
func CheckInclusion(index, size id.Index, leaf id.Hash, hashes []id.Hash, root id.Hash) error {
	if index >= size || size > MaxSize {
		return fmt.Errorf("check inclusion: index or size out of range: %w", ErrProof)
	}
	if len(hashes) > maxHashes {
		return fmt.Errorf("check inclusion: number of hashes: %w", ErrProof)
	}
	h := newProofHasher(leaf, root)
	var buf [maxHashes][]byte
	err := proof.VerifyInclusion(h, uint64(index), uint64(size), h.from[:], appendHashSlices(buf[:0], hashes), h.to[:])
	if err != nil {
		return fmt.Errorf("check inclusion: %w", describeProofError(err))
	}
	return nil
}

// rootOfInclusion returns the root that an inclusion proof leads to. The error wraps ErrProof.
func rootOfInclusion(index, size id.Index, leaf id.Hash, hashes []id.Hash) (root id.Hash, err error) {
	if index >= size || size > MaxSize || len(hashes) > maxHashes {
		return root, fmt.Errorf("root of inclusion: index, size or number of hashes: %w", ErrProof)
	}
	h := newProofHasher(leaf, id.Hash{})
	var buf [maxHashes][]byte
	sum, err := proof.RootFromInclusionProof(h, uint64(index), uint64(size), h.from[:], appendHashSlices(buf[:0], hashes))
	if err != nil {
		return root, fmt.Errorf("root of inclusion: %w", describeProofError(err))
	}
	return id.Hash(sum), nil
}

// CheckConsistency checks that the tree of the first to leaves with the root toRoot extends the
// tree of the first from leaves with the root fromRoot. hashes is a proof as returned by
// Consistency: it is empty if from is 0 or equal to to. The root of size 0 is EmptyRoot. The error
// wraps ErrProof.
func CheckConsistency(from, to id.Index, fromRoot, toRoot id.Hash, hashes []id.Hash) error {
	if from > to || to > MaxSize {
		return fmt.Errorf("check consistency: sizes out of range: %w", ErrProof)
	}
	if from == 0 && fromRoot != EmptyRoot() { // the library does not check the root of size 0
		return fmt.Errorf("check consistency: another root: %w", ErrProof)
	}
	if len(hashes) > maxHashes+1 {
		return fmt.Errorf("check consistency: number of hashes: %w", ErrProof)
	}
	h := newProofHasher(fromRoot, toRoot)
	var buf [maxHashes + 1][]byte
	err := proof.VerifyConsistency(h, uint64(from), uint64(to), appendHashSlices(buf[:0], hashes), h.from[:], h.to[:])
	if err != nil {
		return fmt.Errorf("check consistency: %w", describeProofError(err))
	}
	return nil
}

// describeProofError replaces the library's error, whose text contains values of the input.
func describeProofError(err error) error {
	if mismatch := (proof.RootMismatchError{}); errors.As(err, &mismatch) {
		return fmt.Errorf("another root: %w", ErrProof)
	}
	return fmt.Errorf("number of hashes: %w", ErrProof)
}

func appendHashSlices(slices [][]byte, hashes []id.Hash) [][]byte {
	for i := range hashes {
		slices = append(slices, hashes[i][:])
	}
	return slices
}

// proofHasher is the merkle.LogHasher of one check. rfc6962.DefaultHasher allocates three times per
// hash. A returned hash is valid until the next but one is computed: the library uses each hash
// only to compute the next one or to compare it with a root.
type proofHasher struct {
	from, to id.Hash // the leaf or the older root, and the newer root
	node     [1 + 2*hashSize]byte
	sums     [2]id.Hash
	made     uint // number of hashes
}

func newProofHasher(from, to id.Hash) *proofHasher {
	h := &proofHasher{from: from, to: to}
	h.node[0] = nodePrefix
	return h
}

func (h *proofHasher) HashChildren(left, right []byte) []byte {
	copy(h.node[1:1+hashSize], left)
	copy(h.node[1+hashSize:], right)
	sum := &h.sums[h.made%2]
	h.made++
	*sum = sha256.Sum256(h.node[:])
	return sum[:]
}

func (h *proofHasher) EmptyRoot() []byte { sum := EmptyRoot(); return sum[:] }

func (h *proofHasher) HashLeaf(leaf []byte) []byte { sum := LeafHash(leaf); return sum[:] }

func (h *proofHasher) Size() int { return hashSize }
