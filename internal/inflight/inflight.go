// Package inflight counts the calls that are inside of something that can be closed.
package inflight

import "sync"

// Group is open from the beginning. All methods may be called concurrently.
type Group struct {
	mu     sync.RWMutex // makes closed and the first Add of inside one step
	closed bool
	inside sync.WaitGroup
}

// Begin begins a call, which ends with Leave; false: it is closed.
func (d *Group) Begin() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return false
	}
	d.inside.Add(1)
	return true
}

// End ends a call.
func (d *Group) End() { d.inside.Done() }

// Close lets nobody in any more and returns when everybody has left; false: it was
// closed before.
func (d *Group) Close() bool {
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
