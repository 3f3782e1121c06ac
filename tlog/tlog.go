// Package tlog implements the Merkle tree of a transparency log and its public forms: tiles,
// proofs, checkpoints, and the notes that contain checkpoints. docs/internals/libraries.md lists which
// parts come from established libraries (transparency-dev/merkle, transparency-dev/formats,
// x/mod/sumdb/note).
//
// Invariants:
//
//   - The tree is the tree of RFC 6962 section 2.1 with SHA-256. Tiles follow C2SP tlog-tiles and
//     are 256 hashes wide. Notes are C2SP signed notes, and checkpoints are C2SP tlog-checkpoints
//     with exactly three lines.
//   - A parser accepts one spelling of a value: the spelling that the formatter writes. It bounds
//     its input before it allocates.
//   - A check accepts exactly the proof that the shape of the tree requires, with no hash more or
//     less.
//   - Tree sizes and positions of nodes are below 2^63.
//   - The package does no I/O, reads no clock, keeps no state and starts no goroutine. It reads
//     hashes through a TileReader.
//   - Errors contain no value of the input.
//
// The package is stable in the sense of README, section Stability.
package tlog

import (
	"crypto/sha256"
	"errors"

	"github.com/agentledger/agentledger/id"
)

const (
	// TileWidth is the number of hashes in a full tile and of entries in a full bundle.
	TileWidth = 1 << tileHeight

	// MaxSize is the maximum size of a tree.
	MaxSize id.Index = 1<<63 - 1

	tileHeight = 8
	hashSize   = sha256.Size
)

// Errors that the errors of this package wrap.
var (
	// ErrMalformed: text or bytes violate their grammar, or counts contradict each other.
	ErrMalformed = errors.New("malformed")
	// ErrProof: a proof has the wrong number of hashes or leads to another root.
	ErrProof = errors.New("proof does not hold")
	// ErrSignature: a note has no signature of the key, or one that does not verify.
	ErrSignature = errors.New("no valid signature of the key")
)

// Domain separation of RFC 6962 section 2.1.
const (
	leafPrefix = 0
	nodePrefix = 1
)

// LeafHash returns SHA-256(0x00 || entry).
func LeafHash(entry []byte) id.Hash {
	var buf [512]byte // enough for the entries of this service
	b := append(buf[:0], leafPrefix)
	return sha256.Sum256(append(b, entry...))
}

// NodeHash returns SHA-256(0x01 || left || right).
func NodeHash(left, right id.Hash) id.Hash {
	var b [1 + 2*hashSize]byte
	b[0] = nodePrefix
	copy(b[1:], left[:])
	copy(b[1+hashSize:], right[:])
	return sha256.Sum256(b[:])
}

// EmptyRoot returns the root of the empty tree, the SHA-256 of the empty string.
func EmptyRoot() id.Hash { return sha256.Sum256(nil) }

// foldSubtrees returns the root over the roots of neighbouring perfect subtrees, ordered from the
// largest, on the left, to the smallest. There must be at least one.
func foldSubtrees(subtrees []id.Hash) id.Hash {
	last := len(subtrees) - 1
	root := subtrees[last]
	for i := last - 1; i >= 0; i-- {
		root = NodeHash(subtrees[i], root)
	}
	return root
}
