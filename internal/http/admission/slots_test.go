package admission_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
)

// crowd contains requests that acquire slots and keep them.
type crowd struct {
	testing.TB
	slots  *admission.FairQueue
	ctx    context.Context
	mu     sync.Mutex
	inside map[id.Tenant]int
}

func (c *crowd) come(tenant id.Tenant, n int) {
	for range n {
		go func() {
			if c.slots.Acquire(c.ctx, of(tenant), 1) == nil {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.inside[tenant]++
			}
		}()
		synctest.Wait()
	}
}

func (c *crowd) leave(tenant id.Tenant) {
	c.mu.Lock()
	c.inside[tenant]--
	c.mu.Unlock()
	c.slots.Release(of(tenant), 1)
	synctest.Wait()
}

func (c *crowd) want(step string, n ...int) {
	c.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, tenant := range []id.Tenant{red, blue} {
		if c.inside[tenant] != n[i] {
			c.Errorf("%s: %d of organization %d are at work, want %d", step, c.inside[tenant], tenant, n[i])
		}
	}
}

func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{TB: t, slots: admission.NewSlots(admission.NewContention(), 2), ctx: t.Context(), inside: map[id.Tenant]int{}}
		c.come(red, 1)
		time.Sleep(time.Second)
		c.come(red, 4)
		c.want("alone", 5, 0)
		c.come(blue, 3)
		c.want("with contention", 5, 2)
		c.come(red, 2)
		c.leave(red)
		c.leave(red)
		c.leave(red)
		c.want("too many are still at work", 2, 2)
		c.leave(red)
		c.want("one for one", 2, 2)
		time.Sleep(time.Second)
		c.want("all at work stand still", 3, 3)
		c.leave(red)
		c.leave(blue)
		c.want("the other's line ends too", 2, 2)
		for range 2 {
			c.leave(red)
			c.leave(blue)
		}
		c.want("over", 0, 0)
	})
}

// A single heavy request takes the whole share and is still admitted.
func TestSlotsOfHeavyRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := admission.NewSlots(admission.NewContention(), 4)
		for _, tenant := range []id.Tenant{blue, red} { // contention
			if err := slots.Acquire(t.Context(), of(tenant), 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := slots.Acquire(t.Context(), of(red), 100); err != nil {
			t.Fatal(err)
		}
		in := false
		go func() { in = slots.Acquire(t.Context(), of(red), 1) == nil }()
		synctest.Wait()
		if in {
			t.Error("a request was let in beside a heavy one")
		}
		slots.Release(of(red), 100)
		synctest.Wait()
		if !in {
			t.Error("the heavy one left and nobody was let in")
		}
	})
}

// A request that gives up leaves no state, whether it was waiting or was just admitted.
func TestSlotsOfWhoGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := admission.NewSlots(admission.NewContention(), 1)
		for _, tenant := range []id.Tenant{blue, red} { // contention
			if err := slots.Acquire(t.Context(), of(tenant), 1); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var ended [2]error
		for i, ctx := range []context.Context{ctx, t.Context()} {
			go func() {
				ended[i] = slots.Acquire(ctx, of(red), 1)
				if ended[i] == nil {
					slots.Release(of(red), 1)
				}
			}()
			synctest.Wait()
		}
		cancel()
		slots.Release(of(red), 1)
		synctest.Wait()
		if ended[1] != nil {
			t.Errorf("who waited on got %v", ended[1])
		}
		if err := slots.Acquire(t.Context(), of(red), 1); err != nil { // there is room
			t.Error(err)
		}
	})
}

// After a while, another request gets a lent slot, unless it was reclaimed before.
func TestLentSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := admission.NewSlots(admission.NewContention(), 1)
		if err := slots.Acquire(t.Context(), of(blue), 1); err != nil { // contention
			t.Fatal(err)
		}
		lent := admission.NewSlot(slots, of(red))
		if err := lent.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		if lent.Lend(); !lent.Keep() {
			t.Fatal("a slot was released at once")
		}
		var granted atomic.Bool
		go func() { granted.Store(slots.Acquire(t.Context(), of(red), 1) == nil) }()
		time.Sleep(100 * time.Millisecond)
		if granted.Load() {
			t.Error("a slot was released that was kept")
		}
		lent.Lend()
		time.Sleep(21 * time.Millisecond)
		if !granted.Load() {
			t.Error("a request that waits for its client still has its slot")
		}
		if lent.Keep() {
			t.Error("a slot was kept that was released")
		}
		lent.Release() // nothing
	})
}

func BenchmarkSlots(b *testing.B) {
	slots := admission.NewSlots(admission.NewContention(), 8)
	b.ReportAllocs()
	for b.Loop() {
		if err := slots.Acquire(b.Context(), of(red), 1); err != nil {
			b.Fatal(err)
		}
		slots.Release(of(red), 1)
	}
}
