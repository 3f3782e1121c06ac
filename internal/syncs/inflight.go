package syncs

import "sync"

// InFlight is open from the beginning. All methods may be called concurrently.
type InFlight struct {
	mu     sync.RWMutex // makes closed and the first Add of inside one step
	closed bool
	inside sync.WaitGroup
}

// Begin counts a call, which MUST call End afterwards; false: the group is closed.
func (d *InFlight) Begin() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return false
	}
	d.inside.Add(1)
	return true
}

// End counts a call that Begin has counted as over.
func (d *InFlight) End() { d.inside.Done() }

// Close refuses new calls and returns when those under way have ended; false: it was
// closed before.
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
