package admission

import (
	"net/netip"
	"sync"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/ratelimit"
)

// slowPause is how long a tenant must wait after a download whose reader was too slow. Otherwise a reader that
// retries at once would occupy its slot permanently.
const slowPause = time.Minute

// Downloads bounds responses that take as long as their readers do: in total, per tenant and per network. A
// tenant or network never gets more slots than it leaves free, so the last slots are reserved for those that have none.
// All methods may be called concurrently.
type Downloads struct {
	maxAll, maxTenant, maxNetwork int

	mu       sync.Mutex
	all      int
	tenants  map[id.Tenant]int
	networks map[string]int
	paused   map[id.Tenant]time.Time // end of the pause of tenants whose reader was too slow
}

// NewDownloads returns bounds of all downloads in total and tenant downloads per tenant. A network gets at most half of
// all.
func NewDownloads(all, tenant int) *Downloads {
	return &Downloads{maxAll: all, maxTenant: tenant, maxNetwork: max(1, all/2), tenants: make(map[id.Tenant]int),
		networks: make(map[string]int), paused: make(map[id.Tenant]time.Time)}
}

// Acquire admits a download until release is called, or returns fault.Overloaded. The caller passes to release
// whether the reader was too slow.
func (d *Downloads) Acquire(t id.Tenant, from netip.Addr) (release func(tooSlow bool), err error) {
	network := ratelimit.NetworkOf(from)
	d.mu.Lock()
	defer d.mu.Unlock()
	if wait := time.Until(d.paused[t]); wait > 0 {
		return nil, &fault.Error{Kind: fault.Overloaded, Code: "overloaded", RetryAfter: wait,
			Message: "The last download of this organization was read too slowly; ask again later"}
	}
	free := d.maxAll - d.all
	if free < 1 || exceedsShare(d.tenants[t], 1, d.maxTenant, free) ||
		exceedsShare(d.networks[network], 1, d.maxNetwork, free) {
		return nil, &fault.Error{Kind: fault.Overloaded, Code: "overloaded", RetryAfter: 5 * time.Second,
			Message: "Too many downloads are in flight; ask again later"}
	}
	d.all++
	d.tenants[t]++
	d.networks[network]++
	return func(tooSlow bool) { d.release(t, network, tooSlow) }, nil
}

func (d *Downloads) release(t id.Tenant, network string, tooSlow bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all--
	if d.tenants[t]--; d.tenants[t] == 0 {
		delete(d.tenants, t)
	}
	if d.networks[network]--; d.networks[network] == 0 {
		delete(d.networks, network)
	}
	if !tooSlow {
		return
	}
	now := time.Now()
	for other, until := range d.paused { // few, because each had a slot within the last minute
		if !now.Before(until) {
			delete(d.paused, other)
		}
	}
	d.paused[t] = now.Add(slowPause)
}
