// Package inflight counts the calls that are inside of something that can be closed.
package inflight

import "sync"

// Door is open from the beginning. All methods may be called concurrently.
type Door struct {
	mu     sync.RWMutex // makes closed and the first Add of inside one step
	closed bool
	inside sync.WaitGroup
}

// Enter begins a call, which ends with Leave; false: it is closed.
func (d *Door) Enter() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return false
	}
	d.inside.Add(1)
	return true
}

// Leave ends a call.
func (d *Door) Leave() { d.inside.Done() }

// Close lets nobody in any more and returns when everybody has left; false: it was
// closed before.
func (d *Door) Close() bool {
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
