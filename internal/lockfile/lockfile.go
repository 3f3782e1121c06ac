// Package lockfile lets one process at a time use a folder.
//
// Invariants:
//
//   - Where the system has file locks (flock(2)), a file that is locked can't
//     be locked again, in this process too, until it is closed or the process ends.
//   - A file that a dead process left behind is not locked.
package lockfile

import "errors"

// ErrHeld: another process, or another call of this one, holds the file.
var ErrHeld = errors.New("held by another process")
