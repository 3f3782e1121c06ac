package log

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agentledger/agentledger/id"
)

// Moves collects the ledgers that changed. It may be slow: a ledger that changed a thousand times is collected once.
// Its methods may be called concurrently.
type Moves struct {
	mu    sync.Mutex
	moved map[id.Tenant]struct{}
	ready chan struct{} // holds a token while moved is not empty
}

// Ready receives when there is something to take.
func (m *Moves) Ready() <-chan struct{} { return m.ready }

// Take returns the ledgers that moved since the last call, each once and in no order.
func (m *Moves) Take() []id.Tenant {
	m.mu.Lock()
	moved := m.moved
	m.moved = make(map[id.Tenant]struct{})
	m.mu.Unlock()
	return slices.Collect(maps.Keys(moved))
}

func (m *Moves) addMoved(t id.Tenant) {
	m.mu.Lock()
	m.moved[t] = struct{}{}
	m.mu.Unlock()
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// moveFollowers are the followers of one kind of change.
type moveFollowers struct {
	mu  sync.Mutex
	all atomic.Pointer[[]*Moves] // replaced, never changed
}

// New begins to collect for a new follower, which lasts as long as the ledgers are open.
func (f *moveFollowers) New() *Moves {
	m := &Moves{moved: make(map[id.Tenant]struct{}), ready: make(chan struct{}, 1)}
	f.mu.Lock()
	defer f.mu.Unlock()
	var followed []*Moves
	if old := f.all.Load(); old != nil {
		followed = append(followed, *old...)
	}
	followed = append(followed, m)
	f.all.Store(&followed)
	return m
}

// Tell notes a ledger for all followers. It costs a map entry each and never waits.
func (f *moveFollowers) Tell(t id.Tenant) {
	if followed := f.all.Load(); followed != nil {
		for _, m := range *followed {
			m.addMoved(t)
		}
	}
}
