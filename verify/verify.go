// Package verify is what the public sees of a log (head, proofs, bundle,
// report) and how to check it: one checker for the server, the client and the
// offline tool.
//
// Invariants:
//
//   - A check rests on its arguments alone: no I/O, no clock, no state. The same
//     bundle and options give the same report, on the server and at a stranger's.
//   - A report asserts only what was recomputed. What a document says beyond that
//     is named in Unchecked; what can't be told for lack of disclosure is null.
//   - Nothing in a document is believed because of another part of it that was
//     not proven: sizes, indexes and roots come from one checkpoint.
//   - Everything here is safe for concurrent use, and no input makes it panic.
//
// Sources: RFC 6962 (tree), C2SP signed-note, tlog-checkpoint and tlog-proof.
package verify

import "errors"

// What can be wrong, wrapped by the errors of this package.
var (
	// ErrMalformed: a document is not what its description says.
	ErrMalformed = errors.New("malformed")
	// ErrVersion: a bundle of a version that this package doesn't know.
	ErrVersion = errors.New("unknown version")
	// ErrMismatch: two things that have to agree do not.
	ErrMismatch = errors.New("mismatch")
)
