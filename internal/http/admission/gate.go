// Package admission bounds the work that is under way, so that what is too much is
// refused early and cheaply, and one organization's load costs the others little.
//
// Invariants:
//
//   - A Gate never makes anybody wait: it lets in or refuses, in constant time.
//   - Turns and Lobby never refuse anybody: who waits gets a turn after at most one of each
//     other party that waits, however much those have to do.
//   - Work that waits for something else than a processor, for 200 ms, keeps nobody
//     from work: neither others nor its own party.
//   - Both bound nobody who is alone; in company nobody has all turns, if there are
//     two or more.
//   - A Brake holds back refusals alone, and of those only what comes in floods.
//   - What is known of an organization is forgotten when it has nothing under way, or
//     was refused nothing for a second.
package admission

import (
	"sync"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
)

// Gate bounds the weight of the work under way, in all and of one organization.
// Its methods may be called concurrently.
type Gate struct {
	maxAll, maxOne int
	shared         bool // nobody gets more than what is left for the others

	mu      sync.Mutex
	all     int
	tenants map[id.Tenant]int
	refused Refused
}

// Refused counts refusals by the bound that was reached.
type Refused struct {
	All uint64 // the bound on all work
	One uint64 // the bound on one organization's
}

// NewGate returns a gate that lets in weights up to all, and up to one of one
// organization.
func NewGate(all, one int) *Gate {
	return &Gate{maxAll: all, maxOne: one, tenants: make(map[id.Tenant]int)}
}

// NewSharedGate returns a gate that keeps the last places for who has the fewest: one
// organization never gets more than it leaves free for all others at that moment.
// Example: of 12 places one organization that may have 10 gets 6, the next one 3.
func NewSharedGate(all, one int) *Gate {
	g := NewGate(all, one)
	g.shared = true
	return g
}

// Enter lets work of a weight (at least 1) in until Leave is called with the same
// arguments, or refuses it with fault.Overloaded. Work that is heavier than a bound is
// let in alone.
func (g *Gate) Enter(t id.Tenant, weight int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.tenants[t]
	switch {
	case one > 0 && (one+weight > g.maxOne || g.shared && one+weight > g.maxAll-g.all):
		g.refused.One++
		return overloaded("Too many requests of this organization are under way")
	case g.all > 0 && g.all+weight > g.maxAll:
		g.refused.All++
		return overloaded("Too many requests are under way")
	}
	g.all += weight
	g.tenants[t] = one + weight
	return nil
}

// Leave ends what Enter let in.
func (g *Gate) Leave(t id.Tenant, weight int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all -= weight
	if g.tenants[t] -= weight; g.tenants[t] == 0 {
		delete(g.tenants, t)
	}
}

// Inside returns the weight of the work under way.
func (g *Gate) Inside() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all
}

// Refused returns how often Enter has refused.
func (g *Gate) Refused() Refused {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused
}

func overloaded(message string) error {
	return &fault.Error{Kind: fault.Overloaded, Code: "overloaded", Message: message, RetryAfter: time.Second}
}
