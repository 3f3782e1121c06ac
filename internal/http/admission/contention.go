package admission

import (
	"sync/atomic"
	"time"
)

// contentionTime is how long contention lasts after requests of two tenants.
const contentionTime = time.Second

// contention detects requests of more than one tenant. All methods may be
// called concurrently. A nil contention means that the bounds of a queue always apply.
type contention struct {
	last    atomic.Uint64 // tenant of the last request; 0 before the first
	changed atomic.Int64  // when last changed, in Unix nanoseconds
}

// noteTenant records a request. It reads the clock only if the tenant differs from the last one.
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
