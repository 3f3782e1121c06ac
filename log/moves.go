package log

import (
	"maps"
	"slices"
	"sync"

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
func (l *Ledgers) Moves() *Moves {
	m := &Moves{moved: make(map[id.Tenant]struct{}), ready: make(chan struct{}, 1)}
	l.movesMu.Lock()
	defer l.movesMu.Unlock()
	var followed []*Moves
	if old := l.moves.Load(); old != nil {
		followed = append(followed, *old...)
	}
	followed = append(followed, m)
	l.moves.Store(&followed)
	return m
}

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

// tellMoved tells those who follow. It costs a map entry and never waits.
func (l *Ledgers) tellMoved(t id.Tenant) {
	if followed := l.moves.Load(); followed != nil {
		for _, m := range *followed {
			m.add(t)
		}
	}
}
