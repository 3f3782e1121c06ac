// Package verify defines the public documents of a log (head, proofs, bundle, report) and checks
// them. Server, clients and offline tools share this checker.
//
// Invariants:
//
//   - The result of a check depends only on its arguments: no I/O, no clock, no state. The same
//     bundle and options give the same report everywhere.
//   - A report asserts only recomputed facts. Unchecked lists all other statements of a document. A
//     verdict is null if its check needs undisclosed parts.
//   - No part of a document counts because of another unproven part: sizes, indexes and roots come
//     from one checkpoint.
//   - All functions are safe for concurrent use, and no input makes them panic.
//
// Sources: RFC 6962 (tree), C2SP signed-note, tlog-checkpoint and tlog-proof.
//
// The package is stable in the sense of README, section Stability.
package verify

import "errors"

// Errors that the functions of this package wrap.
var (
	// ErrMalformed is wrapped if a document violates its format.
	ErrMalformed = errors.New("malformed")
	// ErrVersion is returned for a bundle of an unknown version.
	ErrVersion = errors.New("unknown version")
	// ErrMismatch is wrapped if two parts of a document contradict each other.
	ErrMismatch = errors.New("mismatch")
	// ErrTooManyKeys is wrapped if a reader remembers MaxKnownKeys keys of a log and the log states
	// another one.
	ErrTooManyKeys = errors.New("too many keys")
)
