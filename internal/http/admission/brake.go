package admission

import (
	"context"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wait"
)

// Brake takes the speed out of floods of refusals: what an organization is refused
// beyond a number in a second is answered a while later. So a sender that asks
// again at once, however many connections it has, costs little, and one that is
// refused now and then notices nothing. Its methods may be called concurrently.
type Brake struct {
	free int
	hold time.Duration

	mu     sync.Mutex
	second int64
	counts map[id.Tenant]int // refusals in that second
	held   uint64
}

// NewBrake returns a brake that holds back each refusal of an organization beyond
// free in a second. With free 0 it never holds.
func NewBrake(free int, hold time.Duration) *Brake {
	return &Brake{free: free, hold: hold, counts: make(map[id.Tenant]int)}
}

// Hold is called before a refusal is answered. It waits when there are too many,
// until ctx ends at the latest. id.Service stands for all who are nobody.
func (b *Brake) Hold(ctx context.Context, t id.Tenant) {
	if b.free == 0 || !b.many(t, time.Now().Unix()) {
		return
	}
	_ = wait.For(ctx, b.hold)
}

// many counts a refusal and reports whether it has to wait.
func (b *Brake) many(t id.Tenant, second int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.second != second {
		b.second = second
		clear(b.counts)
	}
	b.counts[t]++
	if b.counts[t] <= b.free {
		return false
	}
	b.held++
	return true
}

// Held returns how many refusals had to wait.
func (b *Brake) Held() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}
