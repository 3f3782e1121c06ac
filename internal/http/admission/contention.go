package admission

import (
	"sync/atomic"
	"time"
)

// contentionTime is for how long there is contention after requests of two tenants.
const contentionTime = time.Second

// contention knows whether requests of more than one tenant come. Its methods may be
// called concurrently. With a nil contention the bounds of a queue always hold.
type contention struct {
	last    atomic.Uint64 // tenant of the last request, 0 before the first
	changed atomic.Int64  // time at which last changed, in Unix nanoseconds
}

// noteTenant notes a request. It reads the clock only when the tenant is another than before.
func (c *contention) noteTenant(t Tenant) {
	if c == nil {
		return
	}
	key := uint64(t.ID)<<2 | 1
	if t.Public {
		key |= 2
	}
	if c.last.Load() != key && c.last.Swap(key) != 0 {
		c.changed.Store(time.Now().UnixNano())
	}
}

func (c *contention) isContended() bool {
	return c == nil || time.Now().UnixNano()-c.changed.Load() < int64(contentionTime)
}
