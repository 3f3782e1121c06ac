package archive_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive/objects"
)

// memory is an in-memory object store that can be made to fail.
type memory struct {
	mu      sync.Mutex
	objects map[string][]byte
	writes  int // Create, Replace and Delete since the last failNext
	fail    int // number of the write that fails, from 1; 0 for none
	after   bool
	away    bool
}

func newMemory() *memory { return &memory{objects: map[string][]byte{}} }

// failNext makes the nth write fail, before or after it takes effect.
func (m *memory) failNext(n int, after bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes, m.fail, m.after = 0, n, after
}

// leave makes all calls fail until it is called again.
func (m *memory) leave(away bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = away
}

func (m *memory) names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.objects))
}

// clone returns a store with the same objects.
func (m *memory) clone() *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &memory{objects: maps.Clone(m.objects)}
}

func (m *memory) get(name string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.objects[name]
}

func (m *memory) set(name string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects[name] = data
}

func version(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// write performs a write, or fails before or after it.
func (m *memory) write(f func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return storage.ErrUnavailable
	}
	m.writes++
	if m.writes != m.fail {
		return f()
	}
	if m.after {
		_ = f()
	}
	return fmt.Errorf("write %d: %w", m.writes, storage.ErrUnavailable)
}

func (m *memory) Create(_ context.Context, name string, data []byte) error {
	return m.write(func() error {
		if _, found := m.objects[name]; found {
			return objects.ErrExists
		}
		m.objects[name] = slices.Clone(data)
		return nil
	})
}

func (m *memory) Read(_ context.Context, name string, limit int64) ([]byte, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, found := m.objects[name]
	switch {
	case m.away:
		return nil, "", storage.ErrUnavailable
	case !found:
		return nil, "", objects.ErrNotFound
	case int64(len(data)) > limit:
		return nil, "", objects.ErrTooLarge
	}
	return slices.Clone(data), version(data), nil
}

func (m *memory) Replace(_ context.Context, name string, data []byte, was string) error {
	return m.write(func() error {
		if old, found := m.objects[name]; !found || version(old) != was {
			return objects.ErrChanged
		}
		m.objects[name] = slices.Clone(data)
		return nil
	})
}

func (m *memory) Delete(_ context.Context, name string) error {
	return m.write(func() error {
		delete(m.objects, name)
		return nil
	})
}
