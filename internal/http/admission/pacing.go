package admission

import (
	"context"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
)

// RefusalPacer delays floods of rejections: if a tenant has more than a number of rejections in a second,
// further ones are delayed. So a client that retries rejected requests at once costs little,
// however many connections it has, and a client with few rejections is not affected. All
// methods may be called concurrently.
type RefusalPacer struct {
	free  int
	delay time.Duration

	mu      sync.Mutex
	second  int64
	counts  map[id.Tenant]int // rejections in that second
	delayed uint64
}

// NewRefusalPacer returns a pacer that delays each rejection of a tenant beyond free per
// second. If free is zero, it delays none.
func NewRefusalPacer(free int, delay time.Duration) *RefusalPacer {
	return &RefusalPacer{free: free, delay: delay, counts: make(map[id.Tenant]int)}
}

// DelayRefusal must be called before a rejection is sent. If there were too many, it waits for the delay or until
// ctx ends. id.Service is the tenant of all unknown callers.
func (p *RefusalPacer) DelayRefusal(ctx context.Context, t id.Tenant) {
	if p.free == 0 || !p.exceedsRate(t, time.Now().Unix()) {
		return
	}
	_ = syncs.Sleep(ctx, p.delay)
}

// exceedsRate counts a rejection and reports whether it must be delayed.
func (p *RefusalPacer) exceedsRate(t id.Tenant, second int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.second != second {
		p.second = second
		clear(p.counts)
	}
	p.counts[t]++
	if p.counts[t] <= p.free {
		return false
	}
	p.delayed++
	return true
}

// DelayedRefusals returns the number of delayed rejections.
func (p *RefusalPacer) DelayedRefusals() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delayed
}
