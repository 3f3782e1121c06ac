package syncs

import "sync"

// InFlight counts the calls that are in flight, so that a close can wait for them. The zero value is open. Its methods may
// be called concurrently.
type InFlight struct {
	mu     sync.RWMutex // makes reading closed and adding to inside atomic
	closed bool
	inside sync.WaitGroup
}

// Begin counts a call, which must call End when it returns. It reports false if d is closed; the call must not continue
// then.
func (d *InFlight) Begin() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return false
	}
	d.inside.Add(1)
	return true
}

// End ends a call that Begin has counted.
func (d *InFlight) End() { d.inside.Done() }

// Close rejects new calls and returns when those in flight have ended. It reports whether this call closed d; if d was
// already closed, it returns false at once.
func (d *InFlight) Close() bool {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return false
	}
	d.closed = true
	d.mu.Unlock()
	d.inside.Wait()
	return true
}
