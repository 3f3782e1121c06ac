package admission

import (
	"context"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
)

// RefusalPacer delays floods of refusals: refusals of a tenant beyond a number in a second
// are answered later. A sender that repeats refused requests at once then costs little,
// however many connections it has. A sender with few refusals notices nothing. Its
// methods may be called concurrently.
type RefusalPacer struct {
	free  int
	delay time.Duration

	mu      sync.Mutex
	second  int64
	counts  map[id.Tenant]int // refusals in that second
	delayed uint64
}

// NewRefusalPacer returns a pacer that delays each refusal of a tenant beyond free in a
// second. With free 0 it delays none.
func NewRefusalPacer(free int, delay time.Duration) *RefusalPacer {
	return &RefusalPacer{free: free, delay: delay, counts: make(map[id.Tenant]int)}
}

// DelayRefusal is called before a refusal is answered. When there were too many it waits, or until
// ctx ends. id.Service is the tenant of all unknown callers.
func (p *RefusalPacer) DelayRefusal(ctx context.Context, t id.Tenant) {
	if p.free == 0 || !p.exceedsRate(t, time.Now().Unix()) {
		return
	}
	_ = syncs.Sleep(ctx, p.delay)
}

// exceedsRate counts a refusal and reports whether it has to wait.
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

// DelayedRefusals returns how many refusals had to wait.
func (p *RefusalPacer) DelayedRefusals() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delayed
}
