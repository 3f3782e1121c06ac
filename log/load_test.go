package log_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// silent does not answer reads of red's head until it is released, and ignores contexts, like a disk.
type silent struct {
	*storagetest.Model
	asked    *atomic.Int32
	released chan struct{}
}

func (s silent) Head(ctx context.Context, t id.Tenant) (storage.Head, error) {
	if t == red {
		s.asked.Add(1)
		<-s.released
	}
	return s.Model.Head(ctx, t)
}

// Every caller that waits for a ledger to be loaded returns when its context ends, including the first one. All share
// one read, other organizations' ledgers are not delayed, and the ledger is available when the store answers again.
func TestNobodyWaitsForASilentStore(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	w.mustAppend(red, "a")
	w.mustAppend(blue, "b")
	store := silent{model, new(atomic.Int32), make(chan struct{})}
	w.reopen(store)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := w.ledgers.State(ctx, red)
		cancel()
		if !fault.Is(err, fault.Unavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want Unavailable at the deadline", err)
		}
	}
	if n := store.asked.Load(); n != 1 {
		t.Errorf("the ledger is read %d times at once, want 1", n)
	}
	if got := w.state(blue).Size(); got != 1 {
		t.Errorf("the other organization: got size %d, want 1", got)
	}
	close(store.released)
	if got := w.state(red).Size(); got != 1 {
		t.Errorf("once the store answers: got size %d, want 1", got)
	}
	w.mustAppend(red, "c")
}
