package syncs_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/syncs"
)

func TestOneAtATimeOfEachKey(t *testing.T) {
	var set syncs.KeyLocks[string]
	var group sync.WaitGroup
	inside := map[string]*atomic.Int32{"a": {}, "b": {}}
	count := map[string]int{} // each value is protected by the lock of its key
	var mu sync.Mutex
	for range 100 {
		for key, n := range inside {
			group.Go(func() {
				leave, err := set.Lock(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				defer leave()
				if n.Add(1) != 1 {
					t.Errorf("two are in the lane of %s", key)
				}
				mu.Lock()
				count[key]++
				mu.Unlock()
				n.Add(-1)
			})
		}
	}
	group.Wait()
	if count["a"] != 100 || count["b"] != 100 || set.Len() != 0 {
		t.Errorf("got %v, %d lanes left", count, set.Len())
	}
}

// The lock of another key is free, and a caller that gives up leaves nothing behind.
func TestGivesUp(t *testing.T) {
	var set syncs.KeyLocks[int]
	leave, err := set.Lock(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := set.Lock(ctx, 1); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
	other, err := set.Lock(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	other()
	leave()
	if set.Len() != 0 {
		t.Errorf("%d lanes left", set.Len())
	}
}
