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

// crowd is requests that enter a lobby and stay at work.
type crowd struct {
	testing.TB
	lobby  *admission.Lobby
	ctx    context.Context
	mu     sync.Mutex
	inside map[id.Tenant]int
}

func (c *crowd) come(tenant id.Tenant, n int) {
	for range n {
		go func() {
			if c.lobby.Enter(c.ctx, of(tenant), 1) == nil {
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
	c.lobby.Leave(of(tenant), 1)
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

func TestLobby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{TB: t, lobby: admission.NewLobby(admission.NewCompany(), 2), ctx: t.Context(), inside: map[id.Tenant]int{}}
		c.come(red, 1)
		time.Sleep(time.Second)
		c.come(red, 4)
		c.want("alone", 5, 0)
		c.come(blue, 3)
		c.want("in company", 5, 2)
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

// One heavy request takes the whole share, and is let in all the same.
func TestLobbyOfHeavyRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lobby := admission.NewLobby(admission.NewCompany(), 4)
		for _, tenant := range []id.Tenant{blue, red} { // company
			if err := lobby.Enter(t.Context(), of(tenant), 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := lobby.Enter(t.Context(), of(red), 100); err != nil {
			t.Fatal(err)
		}
		in := false
		go func() { in = lobby.Enter(t.Context(), of(red), 1) == nil }()
		synctest.Wait()
		if in {
			t.Error("a request was let in beside a heavy one")
		}
		lobby.Leave(of(red), 100)
		synctest.Wait()
		if !in {
			t.Error("the heavy one left and nobody was let in")
		}
	})
}

// Who gives up leaves nothing behind, whether it waited or was just let in.
func TestLobbyOfWhoGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lobby := admission.NewLobby(admission.NewCompany(), 1)
		for _, tenant := range []id.Tenant{blue, red} { // company
			if err := lobby.Enter(t.Context(), of(tenant), 1); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var ended [2]error
		for i, ctx := range []context.Context{ctx, t.Context()} {
			go func() {
				ended[i] = lobby.Enter(ctx, of(red), 1)
				if ended[i] == nil {
					lobby.Leave(of(red), 1)
				}
			}()
			synctest.Wait()
		}
		cancel()
		lobby.Leave(of(red), 1)
		synctest.Wait()
		if ended[1] != nil {
			t.Errorf("who waited on got %v", ended[1])
		}
		if err := lobby.Enter(t.Context(), of(red), 1); err != nil { // there is room
			t.Error(err)
		}
	})
}

// A place that is lent is somebody else's after a while, and what was kept is not.
func TestLobbyOfWhoWaitsForASender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lobby := admission.NewLobby(admission.NewCompany(), 1)
		for _, tenant := range []id.Tenant{blue, red} { // company
			if err := lobby.Enter(t.Context(), of(tenant), 1); err != nil {
				t.Fatal(err)
			}
		}
		if !lobby.Lend(of(red), 1, 20*time.Millisecond).Keep() {
			t.Fatal("a place was left at once")
		}
		var entered atomic.Bool
		go func() { entered.Store(lobby.Enter(t.Context(), of(red), 1) == nil) }()
		time.Sleep(100 * time.Millisecond)
		if entered.Load() {
			t.Error("a place that was kept was left")
		}
		loan := lobby.Lend(of(red), 1, 20*time.Millisecond)
		time.Sleep(21 * time.Millisecond)
		if !entered.Load() {
			t.Error("who waits for its sender still has its place")
		}
		if loan.Keep() {
			t.Error("a place was kept that was left")
		}
	})
}

func BenchmarkLobby(b *testing.B) {
	lobby := admission.NewLobby(admission.NewCompany(), 8)
	b.ReportAllocs()
	for b.Loop() {
		if err := lobby.Enter(b.Context(), of(red), 1); err != nil {
			b.Fatal(err)
		}
		lobby.Leave(of(red), 1)
	}
}
