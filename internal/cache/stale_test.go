package cache_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/storage"
)

// down is the error of a store that cannot be reached.
func down() error {
	return &fault.Error{Kind: fault.Unavailable, Err: fmt.Errorf("read: %w", storage.ErrUnavailable)}
}

func hang(ctx context.Context) (string, error) {
	<-ctx.Done()
	return "", down()
}

func gives(value string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return value, nil }
}

func fails(err error) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return "", err }
}

// patience is how long a call with a stale value waits.
const patience = 100 * time.Millisecond

func newStale() *cache.Loading[string, string] {
	return cache.NewLoading(cache.LoadingOptions[string, string]{MaxAge: time.Second, Stale: time.Minute, Limit: 10, Patience: patience})
}

// TestStaleWhileUnavailable varies what happened to the value before, how the store responds, and what is returned.
func TestStaleWhileUnavailable(t *testing.T) {
	gone := errors.New("there is none any more")
	for _, test := range []struct {
		name  string
		steps func(c *cache.Loading[string, string])
		read  func(context.Context) (string, error)
		want  string
		waits time.Duration
		stale uint64
	}{
		{"the store hangs", func(*cache.Loading[string, string]) { time.Sleep(time.Second) }, hang, "old", patience, 1},
		{"the store can't be reached", func(*cache.Loading[string, string]) { time.Sleep(time.Second) }, fails(down()), "old", 0, 1},
		{"the store answers", func(*cache.Loading[string, string]) { time.Sleep(time.Second) }, gives("new"), "new", 0, 0},
		{"the value is fresh", func(*cache.Loading[string, string]) {}, hang, "old", 0, 0},
		{"expired, and the store hangs", func(c *cache.Loading[string, string]) { c.Expire("a") }, hang, "old", patience, 1},
		{"expired, and the store answers", func(c *cache.Loading[string, string]) { c.Expire("a") }, gives("new"), "new", 0, 0},
		{"the store says that it is gone", func(*cache.Loading[string, string]) { time.Sleep(time.Second) }, fails(gone), "", 0, 0},
		{"the bound has passed", func(*cache.Loading[string, string]) { time.Sleep(time.Second + time.Minute) }, fails(down()), "", 0, 0},
		{"just within the bound", func(*cache.Loading[string, string]) { time.Sleep(time.Second + time.Minute - 1) }, fails(down()), "old", 0, 1},
		{"dropped, and the store can't be reached", func(c *cache.Loading[string, string]) { c.Drop("a") }, fails(down()), "", 0, 0},
		{"dropped, and the store hangs", func(c *cache.Loading[string, string]) { c.Drop("a") }, hang, "", 10 * time.Second, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newStale()
				_, _ = c.Get(t.Context(), "a", gives("old"))
				_, _ = c.Get(t.Context(), "b", gives("another"))
				test.steps(c)
				began := time.Now()
				got, err := c.Get(t.Context(), "a", test.read)
				if got != test.want || (err == nil) != (test.want != "") {
					t.Errorf("got %q, %v, want %q", got, err, test.want)
				}
				if waited := time.Since(began); waited != test.waits {
					t.Errorf("waited %v, want %v", waited, test.waits)
				}
				if n := c.StaleAnswers(); n != test.stale {
					t.Errorf("got %d stale answers, want %d", n, test.stale)
				}
				time.Sleep(time.Minute) // the read that hangs ends
			})
		})
	}
}

// A negative response is final: the value does not reappear when the store becomes unavailable afterwards.
func TestNoIsRememberedWhileUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newStale()
		_, _ = c.Get(t.Context(), "a", gives("old"))
		time.Sleep(time.Second)
		_, _ = c.Get(t.Context(), "a", fails(errors.New("revoked by another process")))
		if got, err := c.Get(t.Context(), "a", fails(down())); err == nil {
			t.Errorf("got %q, want none", got)
		}
	})
}

// A dropped key has no stale value for some time, even if it was read again: the change may be committed after that
// read.
func TestDropBeatsStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newStale()
		_, _ = c.Get(t.Context(), "a", gives("old"))
		c.Drop("a")
		if got, err := c.Get(t.Context(), "a", gives("read before the change landed")); err != nil {
			t.Fatal(got, err)
		}
		time.Sleep(time.Second)
		if got, err := c.Get(t.Context(), "a", fails(down())); err == nil {
			t.Errorf("got %q, want none", got)
		}
		time.Sleep(2 * time.Hour)
		_, _ = c.Get(t.Context(), "a", gives("new"))
		time.Sleep(time.Second)
		if got, err := c.Get(t.Context(), "a", fails(down())); got != "new" {
			t.Errorf("long after: got %q, %v", got, err)
		}
	})
}

// A drop while a call waits for the store also takes the stale value away from that call.
func TestDropWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newStale()
		_, _ = c.Get(t.Context(), "a", gives("old"))
		time.Sleep(time.Second)
		got := make(chan error)
		go func() {
			_, err := c.Get(t.Context(), "a", hang)
			got <- err
		}()
		synctest.Wait()
		c.Drop("a")
		if err := <-got; err == nil {
			t.Error("a value was shown that had been dropped")
		}
		time.Sleep(time.Minute)
	})
}

// All callers, including the first, leave when their time is up. They share one read, which ends after its own time.
func TestTheFirstCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newStale()
		var reads, ended atomic.Int64
		began := time.Now()
		read := func(ctx context.Context) (string, error) {
			reads.Add(1)
			<-ctx.Done()
			ended.Store(int64(time.Since(began)))
			return "", down()
		}
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := c.Get(ctx, "a", read); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want DeadlineExceeded", err)
			}
			cancel()
		}
		if waited := time.Since(began); waited != 3*time.Second || reads.Load() != 1 {
			t.Errorf("waited %v with %d reads, want 3s with 1", waited, reads.Load())
		}
		time.Sleep(time.Minute)
		if after := time.Duration(ended.Load()); after != 10*time.Second {
			t.Errorf("the read ended after %v, want 10s", after)
		}
		if got, err := c.Get(t.Context(), "a", gives("new")); got != "new" {
			t.Errorf("after it: got %q, %v", got, err)
		}
	})
}

// A caller with a stale value waits at most once: if a read already hangs, nobody waits.
func TestPatienceIsOfTheRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newStale()
		_, _ = c.Get(t.Context(), "a", gives("old"))
		time.Sleep(time.Second)
		began := time.Now()
		for range 10 {
			if got, err := c.Get(t.Context(), "a", hang); got != "old" {
				t.Fatal(got, err)
			}
		}
		if waited := time.Since(began); waited != patience {
			t.Errorf("ten calls waited %v, want %v", waited, patience)
		}
		time.Sleep(time.Minute)
	})
}

// A read that cannot be ended keeps its key: no second read is started.
func TestOneReadOfAKeyForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newStale()
		release := make(chan struct{})
		var reads atomic.Int32
		stuck := func(context.Context) (string, error) {
			reads.Add(1)
			<-release
			return "late", nil
		}
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, _ = c.Get(ctx, "a", stuck)
			cancel()
		}
		if n := reads.Load(); n != 1 {
			t.Errorf("got %d reads, want 1", n)
		}
		got := make(chan string)
		go func() {
			v, _ := c.Get(t.Context(), "a", gives("read now"))
			got <- v
		}()
		synctest.Wait()
		close(release)
		if v := <-got; v != "read now" {
			t.Errorf("got %q: a value that was read too long before it was asked for", v)
		}
	})
}
