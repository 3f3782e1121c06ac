package log_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// far is a store whose calls take a second. So the time that passes is the number of calls one after another.
type far struct{ *storagetest.Model }

func (f far) Head(ctx context.Context, t id.Tenant) (storage.Head, error) {
	time.Sleep(time.Second)
	return f.Model.Head(ctx, t)
}

func (f far) Append(batches []storage.Batch) storage.Pending {
	time.Sleep(time.Second)
	return f.Model.Append(batches)
}

func (f far) Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error) {
	time.Sleep(time.Second)
	return f.Model.Get(ctx, t, kind, key)
}

func (f far) Counters(ctx context.Context, t id.Tenant, names []string) ([]uint64, error) {
	time.Sleep(time.Second)
	return f.Model.Counters(ctx, t, names)
}

func (f far) TileRoots(ctx context.Context, t id.Tenant, level uint8, begin, end uint64) ([]id.Hash, error) {
	time.Sleep(time.Second)
	return f.Model.TileRoots(ctx, t, level, begin, end)
}

func (f far) Events(
	ctx context.Context, t id.Tenant, begin, end id.Index, parts storage.Fields,
) iter.Seq2[storage.Event, error] {
	time.Sleep(time.Second)
	return f.Model.Events(ctx, t, begin, end, parts)
}

// The first event after a take-over waits for seven ways to the store: identity, fault, head, the append that raises the
// epoch, the parts of the state side by side, the fault again, and the append of the event. Where the last entry is in a
// full tile, it is read behind the roots.
func TestWaysOfATakeOver(t *testing.T) {
	for size, want := range map[int]time.Duration{3: 7, 256: 8, 258: 7} { // partial tiles of level 0, of level 1, of both
		synctest.Test(t, func(t *testing.T) {
			one, two := newNodes(t, far{storagetest.NewModel()})
			for n := range size {
				one.mustAppend(red, fmt.Sprint("e", n))
			}
			one.mustAppend(blue, "neighbour")
			one.give(red, two)
			began := time.Now()
			two.mustAppend(red, "first")
			if got := time.Since(began) / time.Second; got != want {
				t.Errorf("size %d: got %d ways one after another, want %d", size, got, want)
			}
			began = time.Now()
			one.mustAppend(blue, "again")
			if got := time.Since(began) / time.Second; got != 1 {
				t.Errorf("size %d: got %d ways of the neighbour, want 1", size, got)
			}
		})
	}
}
