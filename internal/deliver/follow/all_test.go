package follow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
)

// followAll makes the house follow all ledgers, at least 4 events at a time, one look after another.
func (h *house) followAll() {
	h.follower = follow.New(follow.Options{Records: h.Engine, Ledgers: h.Ledgers, Positions: "test_all", Work: h.doAll,
		All: h.Engine, Least: 4, Places: 1, Turn: 1, Clock: h.Clock})
}

// doAll processes the next 4 events, and writes their indices with the position.
func (h *house) doAll(ctx context.Context, b follow.Batch) (follow.Result, error) {
	r := follow.Result{Next: b.After, Note: b.Position.Note}
	if b.State.Size() < b.After.Next+4 {
		return r, nil
	}
	r.Next = follow.Cursor{Origin: b.State.Identity().Origin, Next: b.After.Next + 4}
	r.Note += fmt.Sprint(b.After.Next, " ")
	r.More = b.State.Size() >= r.Next.Next+4
	key := fmt.Sprintf("%04d", b.After.Next)
	r.Changes = []storage.Change{{Kind: "test_taken", Key: key, Value: []byte("{}"), If: 0}}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = append(h.done, fmt.Sprintf("%d %d", b.Tenant, b.After.Next))
	if h.work != nil {
		if _, err := h.work(ctx, b); err != nil {
			return follow.Result{}, err
		}
	}
	return r, nil
}

func (h *house) taken(tenant id.Tenant) (keys []string) {
	h.t.Helper()
	found, err := h.Engine.Scan(h.t.Context(), tenant, "test_taken", "", "", 100)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, r := range found {
		keys = append(keys, r.Key)
	}
	return keys
}

// Each ledger is followed without a position that was created: those that existed before the start, and those that
// move. Ledgers take turns, and one without enough new events is skipped.
func TestFollowersOfAll(t *testing.T) {
	eachHouse(t, func(t *testing.T, h *house) {
		h.append(red, 17)
		h.append(blue, 9)
		h.work = nil
		h.followAll()
		h.sweep() // finds the ledgers
		for range 8 {
			h.settle()
			h.sweep()
		}
		h.settle()
		h.mu.Lock()
		turns := slices.Clone(h.done)
		h.mu.Unlock()
		if want := []string{"11 0", "12 0", "11 4", "12 4", "11 8", "11 12"}; !slices.Equal(turns, want) {
			t.Errorf("got %q, want %q", turns, want)
		}
		if got, want := h.position(red, "").Note, "0 4 8 12 "; got != want {
			t.Errorf("got note %q, want %q", got, want)
		}
		h.took()
		h.append(red, 2)
		h.runAll()
		if got := h.took(); len(got) != 0 {
			t.Errorf("with 3 new events: got %q", got)
		}
		h.append(red, 1)
		h.runAll()
		if got, want := h.took(), []string{"11 16"}; !slices.Equal(got, want) {
			t.Errorf("with 4: got %q, want %q", got, want)
		}
		if due, err := h.Engine.Scan(t.Context(), id.Service, "test_due", "", "", 10); err != nil || len(due) != 0 {
			t.Errorf("got %d due entries, %v, want none", len(due), err)
		}
	})
}

func (h *house) runAll() {
	h.t.Helper()
	for range 6 {
		h.sweep()
		h.settle()
	}
}

// A ledger whose look failed is retried after a pause, and delays no other ledger.
func TestAllWithAFailure(t *testing.T) {
	h := newHouse(t, enginetest.Pebble(t))
	h.append(red, 4)
	h.append(blue, 4)
	h.work = func(_ context.Context, b follow.Batch) (follow.Result, error) {
		if b.Tenant == red {
			return follow.Result{}, errors.New("no")
		}
		return follow.Result{}, nil
	}
	h.followAll()
	h.runAll()
	if got := [2]int{len(h.taken(red)), len(h.taken(blue))}; got != [2]int{0, 1} {
		t.Errorf("got %v", got)
	}
	h.worksBy(nil)
	h.runAll()
	if got := len(h.taken(red)); got != 0 {
		t.Errorf("within the pause: got %d", got)
	}
	h.Pass(6 * time.Second)
	h.runAll()
	if got := len(h.taken(red)); got != 1 {
		t.Errorf("after the pause: got %d", got)
	}
	if longest, n := h.follower.Waiting(); longest != 0 || n != 0 {
		t.Errorf("got %d waiting for %v", n, longest)
	}
}

// A follower that dies before or after each write of its positions repeats work but skips nothing.
func TestAllDiesAtEachWrite(t *testing.T) {
	eachHouse(t, func(t *testing.T, h *house) {
		h.append(red, 12)
		h.append(blue, 4)
		h.work = nil
		engine := h.Engine
		for n := range 6 {
			for _, after := range []bool{false, true} {
				mortal := &enginetest.Mortal{Engine: engine}
				mortal.DieAt(n, after)
				for _, store := range []storage.Engine{mortal, engine} {
					h.Engine = store
					h.followAll()
					for range 4 { // at most one look per ledger before a death
						h.sweep()
						h.settle()
					}
				}
				h.Engine = engine
				h.Pass(6 * time.Second)
				h.runAll()
				what := fmt.Sprintf("write %d, after it: %v", n, after)
				if got, want := h.taken(red), []string{"0000", "0004", "0008"}; !slices.Equal(got, want) {
					t.Errorf("%s: got %q, want %q", what, got, want)
				}
				if got, want := h.taken(blue), []string{"0000"}; !slices.Equal(got, want) {
					t.Errorf("%s: the other organization: got %q, want %q", what, got, want)
				}
				h.forgetAll(what)
			}
		}
	})
}

// forgetAll removes positions and processed events. A record that was written twice has version 2.
func (h *house) forgetAll(what string) {
	h.t.Helper()
	for _, tenant := range []id.Tenant{red, blue} {
		var changes []storage.Change
		for _, kind := range []storage.Kind{"test_all", "test_taken"} {
			found, err := h.Engine.Scan(h.t.Context(), tenant, kind, "", "", 100)
			if err != nil {
				h.t.Fatal(err)
			}
			for _, r := range found {
				if kind == "test_taken" && r.Version != 1 {
					h.t.Errorf("%s: %s was written %d times", what, r.Key, r.Version)
				}
				changes = append(changes, storage.Change{Kind: kind, Key: r.Key, If: storage.AnyVersion})
			}
		}
		if err := h.Engine.Write(h.t.Context(), tenant, changes); err != nil {
			h.t.Fatal(err)
		}
	}
}
