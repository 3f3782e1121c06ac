package log_test

import (
	"bytes"
	"context"
	"iter"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
	"github.com/agentledger/agentledger/tlog"
)

// headless can't read red's head, nor its events from one index on.
type headless struct {
	*storagetest.Model
	readable id.Index
}

func (h headless) Head(ctx context.Context, t id.Tenant) (storage.Head, error) {
	if t == red {
		return storage.Head{}, storage.ErrCorrupt
	}
	return h.Model.Head(ctx, t)
}

func (h headless) Events(ctx context.Context, t id.Tenant, begin, end id.Index, parts storage.Fields) iter.Seq2[storage.Event, error] {
	if t == red && end > h.readable {
		return func(yield func(storage.Event, error) bool) { yield(storage.Event{}, storage.ErrCorrupt) }
	}
	return h.Model.Events(ctx, t, begin, end, parts)
}

// A frozen ledger shows its anchor, byte for byte, whatever is stored. It is
// detached when the store does not hold that tree.
func TestDetached(t *testing.T) {
	for _, tt := range []struct {
		name     string
		after    func(older, newer *storagetest.Model, fork func() log.Store) log.Store // the store that comes back
		detached bool
	}{
		{"older copy", func(older, _ *storagetest.Model, _ func() log.Store) log.Store { return older }, true},
		{"fork", func(_, _ *storagetest.Model, fork func() log.Store) log.Store { return fork() }, true},
		{"head unreadable", func(_, newer *storagetest.Model, _ func() log.Store) log.Store { return headless{newer, 3} }, false},
		{"head and last entry unreadable", func(_, newer *storagetest.Model, _ func() log.Store) log.Store { return headless{newer, 2} }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			model := storagetest.NewModel()
			w := newWorld(t, model)
			w.mustAppend(red, "a", "b")
			older := model.Reopen()
			w.mustAppend(red, "c")
			shown, note := w.checkpoint(red), bytes.Clone(w.state(red).Checkpoint())
			w.reopen(tt.after(older, model, func() log.Store { return w.forked(older) }))
			w.refuses(red, "frozen")
			s := w.state(red)
			if s.Detached() != tt.detached || s.Shown() != shown || !bytes.Equal(s.Checkpoint(), note) {
				t.Errorf("got detached %v, %+v, want %v, %+v", s.Detached(), s.Shown(), tt.detached, shown)
			}
			if err := s.Provable(); (err != nil) != tt.detached || err != nil && (!fault.Is(err, fault.Unavailable) || fault.Of(err).Code != "frozen") {
				t.Errorf("provable: got %v", err)
			}
			if !tt.detached {
				w.provesShown(red)
			}
			w.mustAppend(blue, "a")
			if s := w.state(blue); s.Detached() || s.Provable() != nil || s.Shown().Size != 1 {
				t.Errorf("the other organization: detached %v, %+v", s.Detached(), s.Shown())
			}
		})
	}
}

// forked returns an older copy that went on elsewhere, past what was shown here.
func (w *world) forked(older *storagetest.Model) log.Store {
	w.t.Helper()
	fork := &world{t: w.t, store: older, keyring: w.keyring, anchors: w.t.TempDir(), agent: w.agent, fatal: w.fatal, Time: w.Time.Copy()}
	fork.open(log.Options{})
	if err := fork.ledgers.Adopt(w.t.Context(), red, fork.state(red).Checkpoint()); err != nil {
		w.t.Fatal(err)
	}
	fork.mustAppend(red, "other", "history")
	fork.ledgers.Close()
	return older
}

// provesShown checks that each entry is proved under the checkpoint that is shown.
func (w *world) provesShown(tenant id.Tenant) {
	w.t.Helper()
	s := w.state(tenant)
	for i := range s.Shown().Size {
		leaf, _, proof, err := w.ledgers.Inclusion(w.t.Context(), s, i, s.Size())
		if err != nil {
			w.t.Fatal(err)
		}
		if err := tlog.CheckInclusion(i, s.Shown().Size, leaf, proof, s.Shown().Root); err != nil {
			w.t.Error(err)
		}
	}
}
