package log

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agentledger/agentledger/id"
)

// Moves collects which ledgers got a new published state, for one reader that
// follows all of them and may be slow: a ledger that moved a thousand times since
// it was taken is there once. Its methods may be called concurrently.
type Moves struct {
	mu    sync.Mutex
	moved map[id.Tenant]struct{}
	ready chan struct{} // holds a token while moved is not empty
}

// Moves begins to collect. There is no end to it: who follows does so as long as
// the ledgers are open. What moved before the call is not told.
func (l *Ledgers) Moves() *Moves { return l.moves.follow() }

// Relisted begins to collect the ledgers of which Listing may say something else than
// before, as Moves does. It may name others too.
func (l *Ledgers) Relisted() *Moves { return l.relisted.follow() }

// Ready receives when there is something to take.
func (m *Moves) Ready() <-chan struct{} { return m.ready }

// Take returns the ledgers that moved since the last call, each once and in no
// order.
func (m *Moves) Take() []id.Tenant {
	m.mu.Lock()
	moved := m.moved
	m.moved = make(map[id.Tenant]struct{})
	m.mu.Unlock()
	return slices.Collect(maps.Keys(moved))
}

func (m *Moves) add(t id.Tenant) {
	m.mu.Lock()
	m.moved[t] = struct{}{}
	m.mu.Unlock()
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// followers are those who follow something of all ledgers.
type followers struct {
	mu  sync.Mutex
	all atomic.Pointer[[]*Moves] // replaced, never changed
}

func (f *followers) follow() *Moves {
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

// tell tells those who follow. It costs a map entry each and never waits.
func (f *followers) tell(t id.Tenant) {
	if followed := f.all.Load(); followed != nil {
		for _, m := range *followed {
			m.add(t)
		}
	}
}
