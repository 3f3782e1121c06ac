package cache_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/internal/cache"
)

// counting returns a load function and a function that returns the number of its calls.
func counting() (func(context.Context) (int64, error), *atomic.Int64) {
	var calls atomic.Int64
	return func(context.Context) (int64, error) { return calls.Add(1), nil }, &calls
}

func TestAge(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c := cache.NewLoading(cache.LoadingOptions[string, int64]{MaxAge: time.Second, Limit: 10, Clock: func() time.Time { return now }})
	load, _ := counting()
	get := func(key string) int64 {
		v, err := c.Get(t.Context(), key, load)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for i, step := range []struct {
		wait time.Duration
		drop bool
		want int64
	}{
		{0, false, 1},
		{time.Second - 1, false, 1},
		{1, false, 2},
		{0, true, 3},
		{time.Second, false, 4},
	} {
		now = now.Add(step.wait)
		if step.drop {
			c.Drop("a")
		}
		if got := get("a"); got != step.want {
			t.Errorf("step %d: got %d, want %d", i, got, step.want)
		}
	}
	if got := get("b"); got != 5 {
		t.Errorf("another key: got %d, want 5", got)
	}
}

// With Writes, a value is read again after its age only if there was a write, including a write during its read.
func TestWrites(t *testing.T) {
	now, writes := time.Unix(1_800_000_000, 0), uint64(0)
	c := cache.NewLoading(cache.LoadingOptions[string, int64]{MaxAge: time.Second, Limit: 10,
		Clock: func() time.Time { return now }, Writes: func() uint64 { return writes }})
	load, _ := counting()
	for i, step := range []struct {
		wait           time.Duration
		writes, during uint64
		drop           bool
		want           int64
	}{
		{0, 0, 0, false, 1},
		{time.Hour, 0, 0, false, 1},
		{0, 1, 0, false, 2}, // it was an hour old
		{time.Second - 1, 1, 0, false, 2},
		{1, 0, 1, false, 3},
		{time.Second, 0, 0, false, 4},
		{time.Hour, 0, 0, false, 4},
		{0, 0, 0, true, 5},
	} {
		now = now.Add(step.wait)
		writes += step.writes
		if step.drop {
			c.Drop("a")
		}
		got, err := c.Get(t.Context(), "a", func(ctx context.Context) (int64, error) {
			writes += step.during
			return load(ctx)
		})
		if err != nil || got != step.want {
			t.Errorf("step %d: got %d, %v, want %d", i, got, err, step.want)
		}
	}
}

func TestForever(t *testing.T) {
	now := time.Unix(0, 0)
	c := cache.NewLoading(cache.LoadingOptions[string, int64]{MaxAge: cache.Forever, Limit: 10, Clock: func() time.Time { return now }})
	load, calls := counting()
	for range 3 {
		_, _ = c.Get(t.Context(), "a", load)
		now = now.AddDate(80, 0, 0)
	}
	if got := calls.Load(); got != 1 {
		t.Errorf("got %d reads, want 1", got)
	}
}

func TestErrorsAreNotRemembered(t *testing.T) {
	c := cache.NewLoading(cache.LoadingOptions[string, int64]{MaxAge: time.Hour, Limit: 10, Clock: time.Now})
	bad := errors.New("bad")
	if _, err := c.Get(t.Context(), "a", func(context.Context) (int64, error) { return 0, bad }); !errors.Is(err, bad) {
		t.Errorf("got %v", err)
	}
	load, _ := counting()
	if got, err := c.Get(t.Context(), "a", load); got != 1 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}

func TestBound(t *testing.T) {
	c := cache.NewLoading(cache.LoadingOptions[int, int64]{MaxAge: time.Hour, Limit: 100})
	load, calls := counting()
	for i := range 1000 {
		_, _ = c.Get(t.Context(), i, load)
	}
	before := calls.Load()
	for i := range 1000 {
		_, _ = c.Get(t.Context(), i, load)
	}
	if hits := 1000 - (calls.Load() - before); hits > 100 {
		t.Errorf("got %d values remembered, want at most 100", hits)
	}
}

// Weighted values stay within a bound of bytes, even if they are read again with another weight. A value heavier than
// the bound is not cached.
func TestBoundOfBytes(t *testing.T) {
	c := cache.NewLoading(cache.LoadingOptions[int, int64]{MaxAge: time.Hour, Limit: 100, Weight: func(_ int, weight int64) int64 { return weight }})
	reads := 0
	get := func(key int, weight int64) {
		t.Helper()
		if _, err := c.Get(t.Context(), key, func(context.Context) (int64, error) { reads++; return weight, nil }); err != nil {
			t.Fatal(err)
		}
	}
	kept := func(keys ...int) (n int) {
		t.Helper()
		for _, key := range keys {
			before := reads
			if get(key, 101); reads == before { // too heavy to be cached now
				n++
			}
		}
		return n
	}
	for i := range 50 {
		get(i%7, 30)
	}
	if got := kept(0, 1, 2, 3, 4, 5, 6); got != 3 {
		t.Errorf("got %d values of 30 in room for 100, want 3", got)
	}
	c.Drop(0)
	for i := range 7 {
		c.Drop(i)
	}
	get(8, 100)
	if got := kept(8); got != 1 {
		t.Error("what was dropped still takes room")
	}
	get(9, 1)
	if got := kept(8, 9); got != 1 {
		t.Errorf("got %d values kept, want the new one alone", got)
	}
}

func TestOneReadsAndTheOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cache.NewLoading(cache.LoadingOptions[string, int64]{MaxAge: time.Hour, Limit: 10, Clock: time.Now})
		load, calls := counting()
		slow := func(ctx context.Context) (int64, error) {
			time.Sleep(time.Second)
			return load(ctx)
		}
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				if got, err := c.Get(t.Context(), "a", slow); got != 1 || err != nil {
					t.Errorf("got %d, %v", got, err)
				}
			})
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		synctest.Wait()
		if _, err := c.Get(impatient, "a", slow); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want DeadlineExceeded", err)
		}
		group.Wait()
		if got := calls.Load(); got != 1 {
			t.Errorf("got %d reads, want 1", got)
		}
	})
}

// A read that started before Drop is not used by later callers.
func TestDropDuringARead(t *testing.T) {
	c := cache.NewLoading(cache.LoadingOptions[string, string]{MaxAge: time.Hour, Limit: 10})
	got, err := c.Get(t.Context(), "a", func(context.Context) (string, error) {
		c.Drop("a")
		return "old", nil
	})
	if got != "old" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	got, _ = c.Get(t.Context(), "a", func(context.Context) (string, error) { return "new", nil })
	if got != "new" {
		t.Errorf("got %q, want new", got)
	}
}

func TestPanicReleasesWaiters(t *testing.T) {
	c := cache.NewLoading(cache.LoadingOptions[string, int64]{MaxAge: time.Hour, Limit: 10, Clock: time.Now})
	if _, err := c.Get(t.Context(), "a", func(context.Context) (int64, error) { panic("x") }); err == nil {
		t.Error("a read that panicked has no error")
	}
	load, _ := counting()
	if got, err := c.Get(t.Context(), "a", load); got != 1 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}

// A value is valid for the version that it was read for and for older ones. A read for an older version returns neither
// a value nor an error to a caller that needs a newer one.
func TestVersions(t *testing.T) {
	c := cache.NewLoading(cache.LoadingOptions[string, int64]{MaxAge: cache.Forever, Limit: 10})
	load, calls := counting()
	for i, step := range []struct{ version, want uint64 }{{5, 1}, {5, 1}, {4, 1}, {6, 2}, {5, 2}} {
		if got, err := c.GetAt(t.Context(), "a", step.version, load); err != nil || uint64(got) != step.want {
			t.Errorf("step %d: got %d, %v, want %d", i, got, err, step.want)
		}
	}
	if _, found := c.Lookup("a", 7); found {
		t.Error("a value of an older version was found")
	}
	if got, found := c.Lookup("a", 6); !found || got != 2 {
		t.Errorf("got %d, %v, want 2", got, found)
	}
	if got, found := c.LastLoaded("a"); !found || got != 2 || calls.Load() != 2 {
		t.Errorf("last: got %d, %v after %d reads", got, found, calls.Load())
	}
}

func TestANewerVersionWaitsForNoOlderRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cache.NewLoading(cache.LoadingOptions[string, string]{MaxAge: cache.Forever, Limit: 10})
		older := make(chan error)
		go func() {
			_, err := c.GetAt(t.Context(), "a", 1, func(context.Context) (string, error) {
				time.Sleep(time.Second)
				return "", errors.New("there is none yet")
			})
			older <- err
		}()
		synctest.Wait()
		if got, err := c.GetAt(t.Context(), "a", 2, gives("new")); got != "new" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		if err := <-older; err == nil {
			t.Error("the older read has no error")
		}
		if got, found := c.Lookup("a", 2); !found || got != "new" {
			t.Errorf("after both: got %q, %v", got, found)
		}
	})
}

func BenchmarkGet(b *testing.B) {
	c := cache.NewLoading(cache.LoadingOptions[[32]byte, int64]{MaxAge: time.Hour, Limit: 10, Clock: time.Now})
	load, _ := counting()
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			_, _ = c.Get(b.Context(), [32]byte{1}, load)
		}
	})
}
