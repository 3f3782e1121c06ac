package follow_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
)

// Work in flight at a fence writes nothing and is retried. Another organization's work continues.
func TestFence(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		h := newHouse(t, open(t))
		h.begin(red, "a", 0)
		h.begin(blue, "a", 0)
		h.append(red, 2)
		h.append(blue, 2)
		tries := map[id.Tenant]int{}
		h.worksBy(func(ctx context.Context, b follow.Batch) (follow.Result, error) {
			if len(b.Events) == 0 {
				return follow.Result{Next: b.After}, nil
			}
			h.mu.Lock()
			tries[b.Tenant]++
			try := tries[b.Tenant]
			h.mu.Unlock()
			if b.Tenant == red && try == 1 {
				if err := h.follower.Fence(ctx, red, "a"); err != nil {
					t.Error(err)
				}
			}
			written := storage.Change{Kind: "test_work", Key: "k", Value: fmt.Append(nil, try), If: storage.AnyVersion}
			return follow.Result{Next: b.After, Changes: []storage.Change{written}}, nil
		})
		for range 3 {
			h.run()
			h.Pass(time.Minute)
		}
		for tenant, want := range map[id.Tenant]string{red: "2", blue: "1"} {
			got, err := h.Engine.Get(t.Context(), tenant, "test_work", "k")
			if err != nil || string(got.Value) != want {
				t.Errorf("%d: written by try %s, %v, want %s", tenant, got.Value, err, want)
			}
			if p := h.position(tenant, "a"); p.Next != 2 {
				t.Errorf("%d: position %d", tenant, p.Next)
			}
		}
		if err := h.follower.Fence(t.Context(), red, "nobody"); err != nil {
			t.Errorf("without a position: %v", err)
		}
	})
}
