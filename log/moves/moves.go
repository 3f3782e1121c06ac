// Package moves tells followers which ledgers have changed.
package moves

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agentledger/agentledger/id"
)

// Follower collects the ledgers that changed. It may be slow: a ledger that changed a thousand times is collected once.
// Its methods may be called concurrently.
type Follower struct {
	mu    sync.Mutex
	moved map[id.Tenant]struct{}
	ready chan struct{} // holds a token while moved is not empty
}

// Ready receives when there is something to take.
func (m *Follower) Ready() <-chan struct{} { return m.ready }

// Take returns the ledgers that moved since the last call, each once and in no order.
func (m *Follower) Take() []id.Tenant {
	m.mu.Lock()
	moved := m.moved
	m.moved = make(map[id.Tenant]struct{})
	m.mu.Unlock()
	return slices.Collect(maps.Keys(moved))
}

func (m *Follower) addMoved(t id.Tenant) {
	m.mu.Lock()
	m.moved[t] = struct{}{}
	m.mu.Unlock()
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// Followers are the followers of one kind of change.
type Followers struct {
	mu  sync.Mutex
	all atomic.Pointer[[]*Follower] // replaced, never changed
}

// New begins to collect for a new follower, which lasts as long as the ledgers are open.
func (f *Followers) New() *Follower {
	m := &Follower{moved: make(map[id.Tenant]struct{}), ready: make(chan struct{}, 1)}
	f.mu.Lock()
	defer f.mu.Unlock()
	var followed []*Follower
	if old := f.all.Load(); old != nil {
		followed = append(followed, *old...)
	}
	followed = append(followed, m)
	f.all.Store(&followed)
	return m
}

// Tell notes a ledger for all followers. It costs a map entry each and never waits.
func (f *Followers) Tell(t id.Tenant) {
	if followed := f.all.Load(); followed != nil {
		for _, m := range *followed {
			m.addMoved(t)
		}
	}
}
