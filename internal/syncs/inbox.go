package syncs

import (
	"maps"
	"slices"
	"sync"
)

// Inbox collects keys for one reader, each once between two calls of Take, so that the reader may be slow and never delays
// a writer. For example, the keys of an Inbox are the ledgers that have changed, and the reader looks at each of them. Its
// methods may be called concurrently. The nil Inbox is always empty, and its Add must not be called.
type Inbox[K comparable] struct {
	limit int
	ready chan struct{} // contains a token if the inbox is not empty

	mu     sync.Mutex
	keys   map[K]struct{}
	missed bool
}

// NewInbox returns an empty inbox for at most limit keys. If limit is 0, the number of keys is not bounded.
func NewInbox[K comparable](limit int) *Inbox[K] {
	return &Inbox[K]{limit: limit, ready: make(chan struct{}, 1), keys: make(map[K]struct{})}
}

// Add adds a key and reports whether the inbox contains it. If the inbox is full, the key counts as missed.
func (b *Inbox[K]) Add(key K) bool {
	defer b.signal()
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, found := b.keys[key]; !found && b.limit > 0 && len(b.keys) >= b.limit {
		b.missed = true
		return false
	}
	b.keys[key] = struct{}{}
	return true
}

// Miss notifies the reader that keys were missed.
func (b *Inbox[K]) Miss() {
	defer b.signal()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missed = true
}

// Ready returns a channel that receives a value if Take has something to return.
func (b *Inbox[K]) Ready() <-chan struct{} {
	if b == nil {
		return nil
	}
	return b.ready
}

// Take returns the keys that were added since the last call, in no particular order, and removes them. missed reports
// whether other keys were missed in that time.
func (b *Inbox[K]) Take() (keys []K, missed bool) {
	if b == nil {
		return nil, false
	}
	b.mu.Lock()
	taken, missed := b.keys, b.missed
	b.keys, b.missed = make(map[K]struct{}), false
	b.mu.Unlock()
	return slices.Collect(maps.Keys(taken)), missed
}

func (b *Inbox[K]) signal() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}
