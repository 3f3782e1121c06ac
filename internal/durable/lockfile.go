package durable

import "errors"

// ErrHeld: another process, or another call of this one, holds the file.
var ErrLocked = errors.New("held by another process")
