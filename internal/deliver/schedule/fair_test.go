package schedule_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

const (
	red  id.Tenant = 11
	blue id.Tenant = 12
)

// backlog adds n entries of one organization, the i-th one due at i.
func backlog(t *testing.T, x *schedule.Index, tenant id.Tenant, n int, lane string) {
	t.Helper()
	for some := range slices.Chunk(slices.Collect(numbers(n)), 1000) {
		entries := make([]schedule.Entry, len(some))
		for i, at := range some {
			entries[i] = schedule.Entry{At: id.Instant(at), Tenant: tenant, Name: fmt.Sprintf("n%d/%s", at, lane)}
		}
		if err := x.NoteEntries(t.Context(), entries...); err != nil {
			t.Fatal(err)
		}
	}
}

func numbers(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// counting counts the calls of a store.
type counting struct {
	storage.RecordStore
	scans, writes int
}

func (c *counting) Scan(ctx context.Context, t id.Tenant, kind storage.Kind, begin, end string, limit int) ([]storage.Record, error) {
	c.scans++
	return c.RecordStore.Scan(ctx, t, kind, begin, end, limit)
}

func (c *counting) Write(ctx context.Context, t id.Tenant, changes []storage.Change) error {
	c.writes++
	return c.RecordStore.Write(ctx, t, changes)
}

// At most one turn of an organization precedes the other's first one, and every due entry is looked at eventually.
func TestTurns(t *testing.T) {
	for _, n := range []int{1, 16, 17, 1000} {
		x := newIndex()
		backlog(t, x, red, n, "")
		note(t, x, schedule.Entry{At: id.Instant(n), Tenant: blue, Name: "blue"})
		before, blues, reds := 0, 0, 0
		err := x.Sweep(t.Context(), at(id.Instant(n)), func(_ context.Context, e schedule.Entry) (schedule.Outcome, error) {
			if e.Tenant == blue {
				before, blues = reds, blues+1
			} else {
				reds++
			}
			return schedule.Done(), nil
		})
		if err != nil || blues != 1 || reds != n {
			t.Errorf("%d due: looked at %d and %d, %v", n, reds, blues, err)
		}
		if before > 16 {
			t.Errorf("%d due: %d of them came before the other's only one", n, before)
		}
	}
}

// The same with 20,000 other entries, in one lane or in separate ones.
func TestBacklog(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		const n = 20_000
		store := &counting{RecordStore: open(t)}
		x := &schedule.Index{Records: store, Kind: "things_due"}
		backlog(t, x, red, n, "")
		full := func(context.Context, schedule.Entry) (schedule.Outcome, error) { return schedule.AllFull(), nil }
		if err := x.Sweep(t.Context(), at(n), full); err != nil { // files the backlog
			t.Fatal(err)
		}
		for name, outcome := range map[string]schedule.Outcome{"done": schedule.Done(), "full": schedule.OrganizationFull()} {
			note(t, x, schedule.Entry{At: n, Tenant: blue, Name: name})
			store.scans, store.writes = 0, 0
			reds, began := 0, time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			err := x.Sweep(ctx, at(n), func(_ context.Context, e schedule.Entry) (schedule.Outcome, error) {
				if e.Tenant == blue {
					cancel()
				} else {
					reds++
				}
				return outcome, nil
			})
			if ctx.Err() == nil || reds > 16 || store.scans > 10 || store.writes > 2 {
				t.Errorf("%s: %d came before the other's, %d reads, %d writes; %v", name, reds, store.scans, store.writes, err)
			}
			t.Logf("%s: the other's was looked at after %d entries, %d reads and %v", name, reds, store.scans, time.Since(began))
			cancel()
		}
	})
}

// A full lane costs one look and one read, however long it is. Entries in other lanes and of other organizations are
// looked at each time.
func TestFullLane(t *testing.T) {
	store := &counting{RecordStore: newIndex().Records}
	x := &schedule.Index{Records: store, Kind: "things_due", Lane: laneOf}
	const n = 2000
	backlog(t, x, red, n, "a")
	note(t, x, schedule.Entry{At: n, Tenant: red, Name: "r/b"}, schedule.Entry{At: n, Tenant: blue, Name: "b/a"})
	outcome := func(e schedule.Entry) schedule.Outcome {
		if e.Lane == "a" && e.Tenant == red {
			return schedule.LaneFull()
		}
		return schedule.Keep()
	}
	var got []string
	if err := x.Sweep(t.Context(), at(n), seen(&got, outcome)); err != nil { // files
		t.Fatal(err)
	}
	got, store.scans, store.writes = nil, 0, 0
	want := []string{"0/11/n0/a", "2000/11/r/b", "2000/12/b/a"}
	if err := x.Sweep(t.Context(), at(n), seen(&got, outcome)); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if store.scans > 10 || store.writes > 0 {
		t.Errorf("took %d reads and %d writes", store.scans, store.writes)
	}
}

func laneOf(_ context.Context, e schedule.Entry) string { return e.Name[len(e.Name)-1:] }

// An organization or a lane that found no capacity comes first when there is some.
func TestWhoIsNext(t *testing.T) {
	x := newIndex()
	x.Lane = laneOf
	for _, name := range []string{"x/a", "x/b", "x/c"} {
		note(t, x, schedule.Entry{At: 1, Tenant: red, Name: name}, schedule.Entry{At: 1, Tenant: blue, Name: name})
	}
	for _, step := range []struct {
		full     string // the look that finds no capacity
		outcome  schedule.Outcome
		wantSeen string
	}{
		{"11x/b", schedule.OrganizationFull(), "[11x/a 11x/b 12x/a 12x/b 12x/c]"},
		{"", schedule.Keep(), "[11x/b 11x/c 11x/a 12x/a 12x/b 12x/c]"},
		{"12x/b", schedule.AllFull(), "[11x/a 11x/b 11x/c 12x/a 12x/b]"},
		{"11x/c", schedule.AllFull(), "[12x/b 12x/c 12x/a 11x/a 11x/b 11x/c]"},
		{"", schedule.Keep(), "[11x/c 11x/a 11x/b 12x/a 12x/b 12x/c]"},
	} {
		var got []string
		err := x.Sweep(t.Context(), at(1), func(_ context.Context, e schedule.Entry) (schedule.Outcome, error) {
			name := fmt.Sprintf("%d%s", e.Tenant, e.Name)
			got = append(got, name)
			if name == step.full {
				return step.outcome, nil
			}
			return schedule.Keep(), nil
		})
		if err != nil || fmt.Sprint(got) != step.wantSeen {
			t.Errorf("got %v, %v; want %s", got, err, step.wantSeen)
		}
	}
}

// Entries of programs without lanes, and copied entries, are found. A store that fails at any moment of a sweep loses
// nothing.
func TestStoreGoesAway(t *testing.T) {
	const n = 300
	for leaves := range 12 {
		store := &leaving{RecordStore: newIndex().Records}
		x := &schedule.Index{Records: store, Kind: "things_due"}
		backlog(t, x, red, n, "")
		looked := make(map[string]bool)
		look := func(_ context.Context, e schedule.Entry) (schedule.Outcome, error) {
			looked[e.Name] = true
			return schedule.Done(), nil
		}
		store.armed, store.left = true, leaves
		if err := x.Sweep(t.Context(), at(n), look); err == nil {
			t.Fatal("the store did not leave")
		}
		store.armed = false
		x = &schedule.Index{Records: store, Kind: "things_due"} // another process continues
		if err := x.Sweep(t.Context(), at(n), look); err != nil || len(looked) != n {
			t.Errorf("leaves at call %d: looked at %d of %d, %v", leaves, len(looked), n, err)
		}
		if left, err := store.Scan(t.Context(), id.Service, x.Kind, "", "", 1); err != nil || len(left) != 0 {
			t.Errorf("leaves at call %d: left %v, %v", leaves, left, err)
		}
	}
}

// leaving is a store that fails after a number of calls.
type leaving struct {
	storage.RecordStore
	armed bool
	left  int
}

func (l *leaving) gone() bool {
	l.left--
	return l.armed && l.left < 0
}

func (l *leaving) Scan(ctx context.Context, t id.Tenant, kind storage.Kind, begin, end string, limit int) ([]storage.Record, error) {
	if l.gone() {
		return nil, storage.ErrUnavailable
	}
	return l.RecordStore.Scan(ctx, t, kind, begin, end, limit)
}

func (l *leaving) Write(ctx context.Context, t id.Tenant, changes []storage.Change) error {
	if l.gone() {
		return storage.ErrUnavailable
	}
	return l.RecordStore.Write(ctx, t, changes)
}
