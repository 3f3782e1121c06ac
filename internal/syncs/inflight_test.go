package syncs_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/internal/syncs"
)

// Close returns when no call is in flight, and no call can begin afterwards.
func TestDoor(t *testing.T) {
	var d syncs.InFlight
	var inside atomic.Int64
	var all sync.WaitGroup
	begun := make(chan struct{}, 8)
	for range cap(begun) {
		all.Go(func() {
			for first := true; d.Begin(); first = false {
				inside.Add(1)
				if first {
					begun <- struct{}{}
				}
				inside.Add(-1)
				d.End()
			}
		})
	}
	<-begun
	if !d.Close() {
		t.Error("an open door was closed before")
	}
	if n := inside.Load(); n != 0 {
		t.Errorf("closed with %d inside", n)
	}
	all.Wait()
	if d.Begin() || d.Close() {
		t.Error("a closed door opened, or was closed again")
	}
}
