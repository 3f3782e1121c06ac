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
	lanes map[K]*keyed
}

type keyed struct {
	turn  chan struct{} // holds one value while the lock is held
	users int           // the holder and the waiters
}

// Lock waits for the lock of a key and returns the function that releases it, which must be called once. It returns
// fault.Unavailable if ctx ends first.
func (s *KeyLocks[K]) Lock(ctx context.Context, key K) (leave func(), err error) {
	mine := s.joinWaiters(key)
	select {
	case mine.turn <- struct{}{}:
		return func() {
			<-mine.turn
			s.leaveWaiters(key, mine)
		}, nil
	case <-ctx.Done():
		s.leaveWaiters(key, mine)
		return nil, &fault.Error{
			Kind:    fault.Unavailable,
			Code:    "unavailable",
			Message: "The request ended before its turn",
			Err:     ctx.Err(),
		}
	}
}

func (s *KeyLocks[K]) joinWaiters(key K) *keyed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lanes == nil {
		s.lanes = make(map[K]*keyed)
	}
	mine := s.lanes[key]
	if mine == nil {
		mine = &keyed{turn: make(chan struct{}, 1)}
		s.lanes[key] = mine
	}
	mine.users++
	return mine
}

func (s *KeyLocks[K]) leaveWaiters(key K, mine *keyed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mine.users--; mine.users == 0 {
		delete(s.lanes, key)
	}
}

// Len returns the number of keys in use.
func (s *KeyLocks[K]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lanes)
}
