package syncs

import "sync"

// InFlight counts calls in flight, so that Close can wait for them. The zero value is open. Its methods may be called
// concurrently.
type InFlight struct {
	mu     sync.RWMutex // makes reading closed and adding to inside atomic
	closed bool
	inside sync.WaitGroup
}

// Begin counts a call, which must call End when it returns. It reports false if f is closed; the call must not continue
// then.
func (f *InFlight) Begin() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return false
	}
	f.inside.Add(1)
	return true
}

// End ends a call that Begin has counted.
func (f *InFlight) End() { f.inside.Done() }

// Close rejects new calls and returns when those in flight have ended. It reports whether this call closed f; if f was
// already closed, it returns false at once.
func (f *InFlight) Close() bool {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return false
	}
	f.closed = true
	f.mu.Unlock()
	f.inside.Wait()
	return true
}
