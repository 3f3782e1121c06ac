package enginetest

import (
	"context"
	"slices"
	"sync"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Mortal is a store whose process dies at a write. After that, it answers no call.
type Mortal struct {
	storage.Engine
	mu        sync.Mutex
	armed     bool
	after     bool // the write is done
	remaining int  // writes before that one
	dead      bool
}

// DieAt makes the process die at a write, counted from 0: after it is done, or before.
func (m *Mortal) DieAt(n int, after bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.armed, m.remaining, m.after = true, n, after
}

// Dead reports whether the process has died.
func (m *Mortal) Dead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// countWrite counts a write, and returns whether it is performed and whether it is answered.
func (m *Mortal) countWrite() (done, answered bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return false, false
	}
	m.dead = m.armed && m.remaining == 0
	m.remaining--
	return !m.dead || m.after, !m.dead
}

// Append implements storage.Ledgers.
func (m *Mortal) Append(batches []storage.Batch) storage.Pending {
	done, answered := m.countWrite()
	if !done {
		return silence(len(batches))
	}
	p := m.Engine.Append(batches)
	if !answered {
		p.Wait()
		return silence(len(batches))
	}
	return p
}

// silence is the outcome of appends of a dead process.
type silence int

// Wait implements storage.Pending.
func (s silence) Wait() []error { return slices.Repeat([]error{storage.ErrUnavailable}, int(s)) }

// Write implements storage.RecordStore.
func (m *Mortal) Write(ctx context.Context, t id.Tenant, changes []storage.Change) error {
	done, answered := m.countWrite()
	if !done {
		return storage.ErrUnavailable
	}
	if err := m.Engine.Write(ctx, t, changes); answered {
		return err
	}
	return storage.ErrUnavailable
}

// Get implements storage.RecordStore.
func (m *Mortal) Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error) {
	if m.Dead() {
		return storage.Record{}, storage.ErrUnavailable
	}
	return m.Engine.Get(ctx, t, kind, key)
}

// Head implements storage.Ledgers.
func (m *Mortal) Head(ctx context.Context, t id.Tenant) (storage.Head, error) {
	if m.Dead() {
		return storage.Head{}, storage.ErrUnavailable
	}
	return m.Engine.Head(ctx, t)
}
