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

// silent does not answer about red's head until it is released, and does not look
// at contexts, as a disk does.
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

// Whoever asks for a ledger that is not in memory leaves at the end of its context,
// the first one too. One read is under way for all of them, others' ledgers are not
// held up, and the ledger is there when the store answers again.
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
