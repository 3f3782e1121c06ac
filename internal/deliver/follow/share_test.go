package follow_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
)

// share is the set of organizations that one process owns.
type share struct {
	storage.RecordStore
	mu    sync.Mutex
	owned map[id.Tenant]bool
	gains uint64
}

func (s *share) Owned(t id.Tenant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owned[t]
}

func (s *share) Gains() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gains
}

func (s *share) set(t id.Tenant, owned bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owned[t] = owned
	if owned {
		s.gains++
	}
}

// An organization of another process is not followed. As soon as this process owns it, it is followed, even if its
// ledger does not move, and no longer when it leaves.
func TestFollowersOfAShare(t *testing.T) {
	h := newHouse(t, enginetest.Pebble(t))
	h.append(red, 4)
	h.append(blue, 4)
	h.work = nil
	s := &share{RecordStore: h.Engine, owned: map[id.Tenant]bool{red: true}}
	h.follower = follow.New(follow.Options{Records: s, Ledgers: h.Ledgers, Positions: "test_all", Work: h.doAll,
		All: h.Engine, Least: 4, Places: 1, Turn: 1, Clock: h.Clock})
	h.runAll()
	if got, want := h.took(), []string{"11 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	h.append(blue, 4) // it moved, and belongs to another process
	h.runAll()
	if got := h.took(); len(got) != 0 {
		t.Errorf("got %q of another process", got)
	}
	s.set(blue, true)
	h.runAll()
	if got, want := h.took(), []string{"12 0", "12 4"}; !slices.Equal(got, want) {
		t.Errorf("after it came: got %q, want %q", got, want)
	}
	s.set(red, false)
	h.append(red, 4)
	h.append(blue, 4)
	h.runAll()
	if got, want := h.took(), []string{"12 8"}; !slices.Equal(got, want) {
		t.Errorf("after another one went: got %q, want %q", got, want)
	}
	if _, n := h.follower.Waiting(); n != 0 {
		t.Errorf("%d wait", n)
	}
}

// The same for followers with names, which have due entries.
func TestNamedFollowersOfAShare(t *testing.T) {
	h := newHouse(t, enginetest.Pebble(t))
	h.begin(red, "a", 0)
	h.begin(blue, "a", 0)
	h.append(red, 2)
	h.append(blue, 2)
	s := &share{RecordStore: h.Engine, owned: map[id.Tenant]bool{red: true}}
	h.follower = follow.New(follow.Options{Records: s, Ledgers: h.Ledgers, Positions: "test_position", Due: "test_due",
		MaxEvents: 10, MaxBytes: 1 << 20, Clock: h.Clock,
		Work: func(_ context.Context, b follow.Batch) (follow.Result, error) {
			return follow.Result{Next: b.After}, nil
		}})
	h.run()
	h.Pass(2 * time.Minute)
	h.run()
	if got := [2]id.Index{h.position(red, "a").Next, h.position(blue, "a").Next}; got != [2]id.Index{2, 0} {
		t.Errorf("got positions %v, want the other process's where it was", got)
	}
	s.set(blue, true)
	s.set(red, false)
	h.append(red, 1)
	h.run()
	if got := [2]id.Index{h.position(red, "a").Next, h.position(blue, "a").Next}; got != [2]id.Index{2, 2} {
		t.Errorf("got positions %v after the share changed", got)
	}
}
