package admission

import (
	"sync"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
)

// Limit is a concurrency limit: it bounds the weight of the requests in flight, in total and
// per tenant. All methods may be called concurrently.
type Limit struct {
	maxAll, maxOne int
	shared         bool // no tenant gets more than it leaves free
	refusal        fault.Error

	mu      sync.Mutex
	all     int
	tenants map[id.Tenant]int
	refused Refused
}

// Refused counts rejections by the bound that was reached.
type Refused struct {
	All uint64 // in total
	One uint64 // per tenant
}

// NewLimit returns a limit with the given maximum weights in total and per tenant.
func NewLimit(all, one int) *Limit {
	return &Limit{maxAll: all, maxOne: one, tenants: make(map[id.Tenant]int),
		refusal: fault.Error{Kind: fault.Overloaded, Code: "overloaded", RetryAfter: time.Second}}
}

// NewSharedLimit returns a limit that reserves the last slots for the tenants with the fewest:
// a tenant never gets more than it leaves free at that moment. For example,
// of 12 slots, a tenant with a maximum of 10 gets 6, and the next tenant 3. Rejections have the given
// message and Retry-After.
func NewSharedLimit(all, one int, message string, retryAfter time.Duration) *Limit {
	l := NewLimit(all, one)
	l.shared, l.refusal.Message, l.refusal.RetryAfter = true, message, retryAfter
	return l
}

// Acquire admits work of a weight (at least 1) until Release is called with the same
// arguments, or returns fault.Overloaded. Work that is heavier than a bound is
// admitted if nothing else is in flight.
func (l *Limit) Acquire(t id.Tenant, weight int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.tenants[t]
	switch {
	case exceedsShare(one, weight, l.maxOne, l.leftForOne()):
		l.refused.One++
		return l.countRefusal("Too many requests of this organization are under way")
	case l.all > 0 && l.all+weight > l.maxAll:
		l.refused.All++
		return l.countRefusal("Too many requests are under way")
	}
	l.all += weight
	l.tenants[t] = one + weight
	return nil
}

// leftForOne returns the maximum weight that a tenant may have at the moment.
func (l *Limit) leftForOne() int {
	if l.shared {
		return l.maxAll - l.all
	}
	return l.maxOne
}

// exceedsShare reports whether a holder must not get more weight: it may hold at most most, and no more than it
// leaves free. The first weight never exceeds the share.
func exceedsShare(held, more, most, free int) bool {
	return held > 0 && held+more > min(most, free)
}

func (l *Limit) countRefusal(message string) error {
	refusal := l.refusal
	if refusal.Message == "" {
		refusal.Message = message
	}
	return &refusal
}

// Release ends the work that Acquire admitted.
func (l *Limit) Release(t id.Tenant, weight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all -= weight
	if l.tenants[t] -= weight; l.tenants[t] == 0 {
		delete(l.tenants, t)
	}
}

// WeightInUse returns the weight of the requests in flight.
func (l *Limit) WeightInUse() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// Refused returns the number of rejections.
func (l *Limit) Refused() Refused {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}
