package syncs

import (
	"context"
	"sync"

	"github.com/agentledger/agentledger/fault"
)

// KeyLocks is a mutex for each key, whose Lock a context can end. The zero value is ready to use. Its methods may be
// called concurrently. A key without a holder and waiters takes no memory.
//
// The locks are for speed: a change of a record is prepared once, instead of again for every caller that was faster.
// Correctness must come from the condition of the write, because another process has separate locks.
type KeyLocks[K comparable] struct {
	mu    sync.Mutex
	locks map[K]*keyed
}

// keyed is the lock of one key.
type keyed struct {
	turn  chan struct{} // holds one value while the lock is held
	users int           // the holder and the waiters
}

// Lock waits for the lock of a key and returns the function that releases it, which must be called once. It returns
// fault.Unavailable if ctx ends first.
func (k *KeyLocks[K]) Lock(ctx context.Context, key K) (unlock func(), err error) {
	lock := k.joinWaiters(key)
	select {
	case lock.turn <- struct{}{}:
		return func() {
			<-lock.turn
			k.leaveWaiters(key, lock)
		}, nil
	case <-ctx.Done():
		k.leaveWaiters(key, lock)
		return nil, &fault.Error{
			Kind:    fault.Unavailable,
			Code:    "unavailable",
			Message: "Timed out waiting for another change to the same object",
			Err:     ctx.Err(),
		}
	}
}

func (k *KeyLocks[K]) joinWaiters(key K) *keyed {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.locks == nil {
		k.locks = make(map[K]*keyed)
	}
	lock := k.locks[key]
	if lock == nil {
		lock = &keyed{turn: make(chan struct{}, 1)}
		k.locks[key] = lock
	}
	lock.users++
	return lock
}

func (k *KeyLocks[K]) leaveWaiters(key K, lock *keyed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if lock.users--; lock.users == 0 {
		delete(k.locks, key)
	}
}

// Len returns the number of keys in use.
func (k *KeyLocks[K]) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.locks)
}
