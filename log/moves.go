package log

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agentledger/agentledger/id"
)

// Moves collects the ledgers that have changed. A follower may be slow: a ledger that changes a thousand times between
// two calls of Take is collected once. Its methods may be called concurrently.
type Moves struct {
	mu    sync.Mutex
	moved map[id.Tenant]struct{}
	ready chan struct{} // holds a token while moved is not empty
}

// Ready returns a channel that receives when Take has something to return.
func (m *Moves) Ready() <-chan struct{} { return m.ready }

// Take returns the ledgers that have changed since the last call, each once and in no particular order.
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

// moveFollowers are the followers of one kind of change: new heads or repaired ledgers, for example. The sequencer and
// the finisher notify them, so Tell must never wait for a follower.
type moveFollowers struct {
	mu  sync.Mutex
	all atomic.Pointer[[]*Moves] // replaced, never changed
}

// New adds a follower, which collects changes until the ledgers are closed.
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

// Tell notes a changed ledger for every follower. It costs one map entry per follower and never blocks.
func (f *moveFollowers) Tell(t id.Tenant) {
	if followed := f.all.Load(); followed != nil {
		for _, m := range *followed {
			m.addMoved(t)
		}
	}
}
