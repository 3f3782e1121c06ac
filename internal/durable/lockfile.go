package durable

import "errors"

// ErrLocked is returned by AcquireLock and AcquireExistingLock if another process, or another call in this process, holds
// the lock.
var ErrLocked = errors.New("held by another process")
