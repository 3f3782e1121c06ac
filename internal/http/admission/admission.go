// Package admission bounds the work of the server, so that an excess of requests is refused
// early and cheaply, and the load of one tenant costs the others little.
//
//	request                                    refused
//	   |
//	   v
//	 Limit        concurrency limit, in all    503, at once;    RefusalPacer
//	   |          and of one tenant            floods of refusals are answered later
//	   v
//	 Slots,       fair queues: each tenant has a share of slots in each, by weight
//	 Reads,       a waiter gets the slot that its tenant frees
//	 Decisions
//	   |
//	   v
//	 Processors   fair queue: one slot for each processor, round robin over tenants
//	   |          for signatures, policies, compiling
//	   v
//	 answer       a slow client's slot is lent to its tenant's waiters
//
// Invariants:
//
//   - A Limit never makes a request wait. It admits or refuses in constant time.
//   - A FairQueue refuses no request. A waiter gets a slot after at most one of each other
//     tenant that waits, however much those tenants have to do.
//   - A slot of work that stands still for 200 ms, for example behind a store that hangs,
//     counts no more: waiters of its own tenant and of others go on.
//   - Decisions and reads of a tenant wait for none of its requests that store something.
//   - No bound of a FairQueue holds for a tenant that is alone. With two tenants or more, no
//     tenant has all slots if there are two or more.
//   - The cost of a slot does not grow with the number of tenants.
//   - A RefusalPacer delays refusals only, and only those that come in floods.
//   - Nothing is kept of a tenant without work under way, or a second after its last refusal.
package admission

import (
	"sync"

	"github.com/agentledger/agentledger/id"
)

// Tenant is a party that shares the server with others: the senders and the people of an
// organization, or the anonymous readers of its public log. Readers are a tenant of
// their own, so they take nothing from the share of the organization's senders.
type Tenant struct {
	ID     id.Tenant
	Public bool
}

// TenantOf returns the tenant of an organization's senders and people.
func TenantOf(t id.Tenant) Tenant { return Tenant{ID: t} }

// Control is the load control that all surfaces of a server share, so that a tenant that
// keeps one surface busy leaves the others their part of the processors on each.
type Control struct {
	Slots      *FairQueue // of requests that store something, from their body to their answer
	Reads      *FairQueue // of requests that read; with contention, one processor stays free of each tenant's
	Decisions  *FairQueue // the same for policy decisions, which agents wait for and people's reads do not delay
	Processors *FairQueue // of work that does nothing but compute
	contention *contention
	unused     sync.Pool // of slots
}

// slotsPerProcessor is the share of one tenant, with contention. It is enough to fill
// appends, and few enough that a single request beside them takes about twice its time.
const slotsPerProcessor = 4

// New returns the load control for a number of processors.
func New(processors int) *Control {
	c, share, others := new(contention), slotsPerProcessor*processors, max(1, processors-1)
	return &Control{
		contention: c,
		Slots:      newFairQueue(c, 0, share),
		Reads:      newFairQueue(c, 0, others),
		Decisions:  newFairQueue(c, 0, others),
		Processors: newFairQueue(c, processors, others),
	}
}

// Contended reports whether requests of several tenants have come within a second.
func (c *Control) Contended() bool { return c.contention.isContended() }
