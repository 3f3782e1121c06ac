package follow_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

const red, blue = ledgertest.Red, ledgertest.Blue

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

// house has the followers of two organizations, whose work the test defines.
type house struct {
	*ledgertest.Service
	t        testing.TB
	follower *follow.Follower
	appended int

	mu   sync.Mutex
	work follow.Work
	done []string // tenant, name and indices of each batch
}

func newHouse(t testing.TB, engine storage.Engine) *house {
	h := &house{Service: ledgertest.On(t, engine), t: t}
	h.work = func(_ context.Context, b follow.Batch) (follow.Result, error) {
		return follow.Result{Next: b.After}, nil
	}
	for _, tenant := range []id.Tenant{red, blue} {
		h.Found(t, tenant)
	}
	h.follower = follow.New(follow.Options{
		Records: engine, Ledgers: h.Ledgers, Positions: "test_position", Due: "test_due", MaxEvents: 4, MaxBytes: 1 << 20,
		Clock: h.Clock, Work: h.doWork,
	})
	return h
}

func (h *house) doWork(ctx context.Context, b follow.Batch) (follow.Result, error) {
	h.mu.Lock()
	if len(b.Events) > 0 {
		line := fmt.Sprintf("%d %s:", b.Tenant, b.Name)
		for _, e := range b.Events {
			line += fmt.Sprint(" ", e.Index)
		}
		h.done = append(h.done, line)
	}
	work := h.work
	h.mu.Unlock()
	return work(ctx, b)
}

func (h *house) worksBy(work follow.Work) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.work = work
}

// took returns the batches since the last call.
func (h *house) took() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	done := h.done
	h.done = nil
	slices.Sort(done)
	return done
}

func (h *house) begin(tenant id.Tenant, name string, at id.Index) {
	h.t.Helper()
	p, err := h.follower.Position(h.t.Context(), tenant, name)
	if err != nil {
		h.t.Fatal(err)
	}
	change, err := h.follower.Begin(h.t.Context(), tenant, p, follow.Cursor{Origin: ledgertest.Origin(tenant), Next: at})
	if err == nil {
		err = h.Engine.Write(h.t.Context(), tenant, []storage.Change{change})
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) append(tenant id.Tenant, n int) {
	h.t.Helper()
	a := ledgertest.NewAgent()
	for range n {
		h.appended++
		e := a.Envelope(h.t, tenant, fmt.Sprint("evt-", h.appended), nil)
		_, err := h.Ledgers.Append(h.t.Context(), tenant, func(_ context.Context, s *log.State) (log.Submission, error) {
			return log.Submission{Drafts: []log.Draft{log.NewDraft(s.Identity(), e, a.Attestation(e))}}, nil
		})
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h *house) sweep() {
	h.t.Helper()
	if err := h.follower.Sweep(h.t.Context(), slog.New(slog.NewTextHandler(h.t.Output(), nil))); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) settle() {
	ended, cancel := context.WithCancel(h.t.Context())
	cancel()
	h.follower.Run(ended, slog.New(slog.DiscardHandler))
}

// run does all work that is due now.
func (h *house) run() {
	h.t.Helper()
	for range 3 {
		h.sweep()
		h.settle()
	}
}

func (h *house) position(tenant id.Tenant, name string) follow.Position {
	h.t.Helper()
	p, err := h.follower.Position(h.t.Context(), tenant, name)
	if err != nil || !p.Exists() {
		h.t.Fatalf("got %+v, %v", p, err)
	}
	return p.Value
}

func eachHouse(t *testing.T, run func(*testing.T, *house)) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) { run(t, newHouse(t, open(t))) })
}

// Each follower gets the events from its own position on, only of its organization, once.
func TestFollowers(t *testing.T) {
	eachHouse(t, func(t *testing.T, h *house) {
		h.append(red, 6)
		h.append(blue, 2)
		h.begin(red, "a", 0)
		h.begin(red, "b", 5)
		h.begin(blue, "a", 1)
		h.run()
		if got, want := h.took(), []string{"11 a: 0 1 2 3", "11 a: 4 5", "11 b: 5", "12 a: 1"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		h.append(red, 1)
		h.run()
		if got, want := h.took(), []string{"11 a: 6", "11 b: 6"}; !slices.Equal(got, want) {
			t.Errorf("later: got %q, want %q", got, want)
		}
		h.Pass(time.Hour) // the entries of followers without news are due
		h.run()
		if got := h.took(); len(got) != 0 {
			t.Errorf("again: got %q", got)
		}
		if due, err := h.Engine.Scan(t.Context(), id.Service, "test_due", "", "", 10); err != nil || len(due) != 3 {
			t.Errorf("got %d due entries, %v, want one for each follower", len(due), err)
		}
	})
}

// If a user moves a position while its work is in flight, the user's position wins.
func TestMovedMeanwhile(t *testing.T) {
	eachHouse(t, func(t *testing.T, h *house) {
		h.append(red, 3)
		h.begin(red, "a", 2)
		h.worksBy(func(_ context.Context, b follow.Batch) (follow.Result, error) {
			h.worksBy(func(_ context.Context, b follow.Batch) (follow.Result, error) {
				return follow.Result{Next: b.After}, nil
			})
			h.begin(red, "a", 0)
			return follow.Result{Next: b.After, Changes: []storage.Change{{Kind: "test_lost", Value: []byte("{}")}}}, nil
		})
		h.run()
		h.Pass(time.Minute)
		h.run()
		if got, want := h.took(), []string{"11 a: 0 1 2", "11 a: 2"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if _, err := h.Engine.Get(t.Context(), red, "test_lost", ""); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("the work that lost has written: %v", err)
		}
	})
}

// Work that fails is retried and does not move the position.
func TestWorkThatFails(t *testing.T) {
	h := newHouse(t, enginetest.Pebble(t))
	h.append(red, 1)
	h.begin(red, "a", 0)
	h.worksBy(func(context.Context, follow.Batch) (follow.Result, error) { return follow.Result{}, errors.New("no") })
	h.run()
	if p := h.position(red, "a"); p.Next != 0 {
		t.Errorf("got %+v", p)
	}
	h.worksBy(func(_ context.Context, b follow.Batch) (follow.Result, error) {
		return follow.Result{Next: b.After}, nil
	})
	h.took()
	h.Pass(time.Hour)
	h.run()
	if got, want := h.took(), []string{"11 a: 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The followers of one organization have at most four slots, so another organization finds capacity.
func TestPlaces(t *testing.T) {
	h := newHouse(t, enginetest.Pebble(t))
	h.append(red, 1)
	h.append(blue, 1)
	release, begun := make(chan struct{}), make(chan id.Tenant, 100)
	h.worksBy(func(_ context.Context, b follow.Batch) (follow.Result, error) {
		begun <- b.Tenant
		<-release
		return follow.Result{Next: b.After}, nil
	})
	for i := range 12 {
		h.begin(red, fmt.Sprintf("r%02d", i), 0)
	}
	h.sweep()
	h.begin(blue, "b", 0)
	h.sweep()
	counts := map[id.Tenant]int{}
	for range 5 {
		counts[<-begun]++
	}
	if counts[red] != 4 || counts[blue] != 1 || len(begun) != 0 {
		t.Errorf("under way: got %v and %d more, want 4 of red and 1 of blue", counts, len(begun))
	}
	close(release)
	h.settle()
	for range 12 {
		h.sweep()
		h.settle()
	}
	if got := len(h.took()); got != 13 {
		t.Errorf("got %d batches in the end, want 13", got)
	}
}
