// Package lockfile keeps what lies in a folder to one process at a time.
//
// Invariants:
//
//   - Where the system has file locks (flock(2)), a file that is held is refused to
//     everybody else, in this process too, until it is closed or the process ends.
//   - A file that was left behind holds nothing.
package lockfile

import "errors"

// ErrHeld: somebody else holds the file.
var ErrHeld = errors.New("held by another process")
