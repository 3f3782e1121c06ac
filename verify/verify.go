// Package verify defines the public documents of a log (head, proofs, bundle, report) and
// checks them. Server, client and offline tool use this one checker.
//
// Invariants:
//
//   - A check depends on its arguments alone: no I/O, no clock, no state. The same bundle
//     and options give the same report everywhere.
//   - A report asserts only recomputed facts. Unchecked names all other statements of a
//     document. A verdict is null when its check needs undisclosed parts.
//   - No part of a document counts because of another unproven part: sizes, indexes and
//     roots come from one checkpoint.
//   - Everything here is safe for concurrent use, and no input makes it panic.
//
// Sources: RFC 6962 (tree), C2SP signed-note, tlog-checkpoint and tlog-proof.
//
// The package is stable in the sense of README, section Stability.
package verify

import "errors"

// Errors that the functions of this package wrap.
var (
	// ErrMalformed is wrapped for a document in another form than described.
	ErrMalformed = errors.New("malformed")
	// ErrVersion is returned for a bundle of an unknown version.
	ErrVersion = errors.New("unknown version")
	// ErrMismatch is wrapped when two parts of a document disagree.
	ErrMismatch = errors.New("mismatch")
	// ErrTooManyKeys is wrapped if a reader remembers MaxKnownKeys keys of a log and the
	// log states another one.
	ErrTooManyKeys = errors.New("too many keys")
)
