package admission

import (
	"sync"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
)

// Limit is a concurrency limit: it bounds the weight of the requests under way, in all and
// of one tenant. Its methods may be called concurrently.
type Limit struct {
	maxAll, maxOne int
	shared         bool // no tenant gets more than it leaves free
	refusal        fault.Error

	mu      sync.Mutex
	all     int
	tenants map[id.Tenant]int
	refused Refused
}

// Refused counts refusals by the bound that was reached.
type Refused struct {
	All uint64 // the bound on all requests
	One uint64 // the bound on the requests of one tenant
}

// NewLimit returns a limit of weights up to all, and up to one of one tenant.
func NewLimit(all, one int) *Limit {
	return &Limit{maxAll: all, maxOne: one, tenants: make(map[id.Tenant]int),
		refusal: fault.Error{Kind: fault.Overloaded, Code: "overloaded", RetryAfter: time.Second}}
}

// NewSharedLimit returns a limit that keeps the last slots for the tenant with the fewest:
// a tenant never gets more than it leaves free for all others at that moment. For example,
// of 12 slots one tenant that may have 10 gets 6, the next one 3. Refusals have the
// message and ask to be left alone for retryAfter.
func NewSharedLimit(all, one int, message string, retryAfter time.Duration) *Limit {
	l := NewLimit(all, one)
	l.shared, l.refusal.Message, l.refusal.RetryAfter = true, message, retryAfter
	return l
}

// Acquire admits work of a weight (at least 1) until Release is called with the same
// arguments, or refuses it with fault.Overloaded. Work that is heavier than a bound is
// admitted alone.
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

// leftForOne returns the weight that a tenant must leave free for others to get more.
func (l *Limit) leftForOne() int {
	if l.shared {
		return l.maxAll - l.all
	}
	return l.maxOne
}

// exceedsShare reports whether a holder of some weight must not get more: it may hold up to most, and no more than it
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

// WeightInUse returns the weight of the requests under way.
func (l *Limit) WeightInUse() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// Refused returns how often Acquire has refused.
func (l *Limit) Refused() Refused {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}
