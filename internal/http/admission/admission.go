// Package admission bounds the work of the server, so that excess requests are rejected
// early and cheaply, and the load of one tenant costs the others little. It hides queues, weights and stalls from the
// surfaces, which call Class.Serve.
//
//	request                                    rejected
//	   |
//	   v
//	 Limit        concurrency limit, in total  503, at once;    RefusalPacer
//	   |          and per tenant               delays floods of rejections
//	   v
//	 Slots,       fair queues: each tenant has a share of slots in each, by weight
//	 Reads,       a waiter gets the slot that its tenant frees
//	 Decisions
//	   |
//	   v
//	 Processors   fair queue: one slot per processor, round robin over tenants,
//	   |          for signatures, policies, compiling
//	   v
//	 response     the slot of a slow client is lent to its tenant's waiters
//
// Invariants:
//
//   - A Limit never blocks. It admits or rejects in constant time.
//   - A FairQueue rejects no request. A waiter gets a slot after at most one waiter of each other
//     tenant, however large their backlogs are.
//   - A slot whose work has stalled for 200 ms, for example because the store hangs,
//     no longer counts: waiters of its tenant and of others proceed.
//   - Decisions and reads of a tenant never wait for its requests that store something.
//   - A FairQueue does not limit a tenant that is alone. With two or more tenants and slots, no
//     tenant holds all slots.
//   - The cost of a slot does not grow with the number of tenants.
//   - A RefusalPacer delays only rejections, and only in floods.
//   - No state is kept for a tenant without work in flight, or a second after its last rejection.
package admission

import (
	"sync"

	"github.com/agentledger/agentledger/id"
)

// Tenant is a party that shares the server with others: the agents and members of an
// organization, or the anonymous readers of its public log. Readers are a separate tenant,
// so they do not use the share of the organization.
type Tenant struct {
	ID     id.Tenant
	Public bool
}

// TenantOf returns the tenant of an organization's agents and members.
func TenantOf(t id.Tenant) Tenant { return Tenant{ID: t} }

// Control is the load control that all surfaces of a server share, so that a tenant that
// keeps one surface busy leaves other tenants their share of the processors on all of them.
type Control struct {
	Slots      *FairQueue // for requests that store something, from body to response
	Reads      *FairQueue // for requests that read; under contention, one processor stays free of each tenant's reads
	Decisions  *FairQueue // like Reads, for policy decisions, which reads must not delay
	Processors *FairQueue // for work that only computes
	contention *contention
	unused     sync.Pool // of slots
}

// slotsPerProcessor is the share of a tenant under contention. It is high enough to fill
// appends, and low enough that a single request of another tenant takes about twice its time.
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

// Contended reports whether requests of several tenants have arrived within a second.
func (c *Control) Contended() bool { return c.contention.isContended() }
