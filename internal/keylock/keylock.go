// Package keylock lets those who change the same thing come one after the other.
//
// Invariants:
//
//   - One caller at a time is in the lane of a key; the others wait, as long as their
//     contexts allow.
//   - A key that nobody uses takes no memory.
//   - Lanes are for speed: who changes a record is prepared once and not as often as
//     others were faster. What keeps changes apart is the condition they are written
//     under, since another process has lanes of its own.
package keylock

import (
	"context"
	"sync"

	"github.com/agentledger/agentledger/fault"
)

// Set is a lane for each key. The zero value is ready; its methods may be called
// concurrently.
type Set[K comparable] struct {
	mu    sync.Mutex
	lanes map[K]*lane
}

type lane struct {
	turn  chan struct{} // holds one value while somebody is in the lane
	users int           // who is in it or waits
}

// Enter waits for the turn and returns what ends it, to be called once.
// fault.Unavailable when ctx ends before.
func (s *Set[K]) Enter(ctx context.Context, key K) (leave func(), err error) {
	mine := s.join(key)
	select {
	case mine.turn <- struct{}{}:
		return func() {
			<-mine.turn
			s.part(key, mine)
		}, nil
	case <-ctx.Done():
		s.part(key, mine)
		return nil, &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: "The request ended before its turn", Err: ctx.Err()}
	}
}

func (s *Set[K]) join(key K) *lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lanes == nil {
		s.lanes = make(map[K]*lane)
	}
	mine := s.lanes[key]
	if mine == nil {
		mine = &lane{turn: make(chan struct{}, 1)}
		s.lanes[key] = mine
	}
	mine.users++
	return mine
}

func (s *Set[K]) part(key K, mine *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mine.users--; mine.users == 0 {
		delete(s.lanes, key)
	}
}

// Len returns how many keys are in use.
func (s *Set[K]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lanes)
}
