package admission_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
)

// Organizations share the processors, whatever the order and number of their requests.
func TestProcessorsGoAround(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		processors := admission.NewProcessors(admission.NewContention(), 1)
		if err := processors.Acquire(t.Context(), of(gold), 1); err != nil {
			t.Fatal(err)
		}
		var served []id.Tenant // only written by who has the turn
		for _, tenant := range []id.Tenant{red, red, red, red, blue, red, gold, blue} {
			go func() {
				if processors.Acquire(t.Context(), of(tenant), 1) == nil {
					served = append(served, tenant)
					processors.Release(of(tenant), 1)
				}
			}()
			synctest.Wait()
		}
		processors.Release(of(gold), 1)
		synctest.Wait()
		if want := []id.Tenant{red, blue, gold, red, blue, red, red, red}; !slices.Equal(served, want) {
			t.Errorf("got %v, want %v", served, want)
		}
	})
}

// A waiter that gives up takes no turn, even if it is the last one of its organization.
func TestProcessorsOfWhoGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		processors := admission.NewProcessors(admission.NewContention(), 1)
		if err := processors.Acquire(t.Context(), of(gold), 1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var gaveUp, served atomic.Int64
		for _, tenant := range []id.Tenant{red, blue, blue} {
			for _, ctx := range []context.Context{ctx, t.Context()} {
				if tenant == red && ctx == t.Context() {
					continue // all of red gives up
				}
				go func() {
					if err := processors.Acquire(ctx, of(tenant), 1); errors.Is(err, context.Canceled) {
						gaveUp.Add(1)
						return
					}
					served.Add(1)
					processors.Release(of(tenant), 1)
				}()
			}
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		processors.Release(of(gold), 1)
		synctest.Wait()
		if gaveUp.Load() != 3 || served.Load() != 2 {
			t.Errorf("%d gave up and %d were served, want 3 and 2", gaveUp.Load(), served.Load())
		}
		if err := processors.Acquire(t.Context(), of(red), 1); err != nil { // the turn is free again
			t.Error(err)
		}
	})
}

// A single organization never waits. A second one gets a turn in addition to the work in flight, and the first one gets
// no more before it has released its slots.
func TestProcessorsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		processors := admission.NewProcessors(admission.NewContention(), 2)
		for range 4 {
			if err := processors.Acquire(t.Context(), of(red), 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := processors.Acquire(t.Context(), of(blue), 1); err != nil {
			t.Fatal(err)
		}
		served := map[id.Tenant]int{}
		for _, tenant := range []id.Tenant{red, blue} {
			go func() {
				if processors.Acquire(t.Context(), of(tenant), 1) == nil {
					served[tenant]++ // all others are blocked
				}
			}()
			synctest.Wait()
		}
		for given, want := range []map[id.Tenant]int{{}, {}, {}, {}, {red: 1}} {
			if !maps.Equal(served, want) {
				t.Errorf("%d processors given back: served %v, want %v", given, served, want)
			}
			if given < 4 {
				processors.Release(of(red), 1)
				synctest.Wait()
			}
		}
		processors.Release(of(blue), 1)
		synctest.Wait()
		if want := map[id.Tenant]int{red: 1, blue: 1}; !maps.Equal(served, want) {
			t.Errorf("served %v, want %v", served, want)
		}
	})
}

// Under contention, one processor stays free of each organization, until it is alone again.
func TestProcessorsKeepOneFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		processors := admission.NewProcessors(admission.NewContention(), 3)
		for _, tenant := range []id.Tenant{blue, red, red} {
			if err := processors.Acquire(t.Context(), of(tenant), 1); err != nil {
				t.Fatal(err)
			}
		}
		processors.Release(of(blue), 1)
		var third atomic.Bool
		go func() { third.Store(processors.Acquire(t.Context(), of(red), 1) == nil) }()
		synctest.Wait()
		if third.Load() {
			t.Error("one party has all processors")
		}
		time.Sleep(stallTime / 2)
		for range 3 {
			if err := processors.Acquire(t.Context(), of(gold), 1); err != nil { // others do not wait
				t.Fatal(err)
			}
			processors.Release(of(gold), 1)
		}
		processors.Release(of(red), 1)
		synctest.Wait()
		if !third.Load() {
			t.Error("not served though a turn was given back")
		}
	})
}

// There is never more work in flight than processors, and no turn is lost.
func TestProcessorsAreKept(t *testing.T) {
	const workers, rounds = 12, 300
	processors := admission.NewProcessors(admission.NewContention(), 3)
	var working, most atomic.Int64
	done := make(chan struct{}, workers)
	for w := range workers {
		go func() {
			defer func() { done <- struct{}{} }()
			for round := range rounds {
				ctx, cancel := context.WithCancel(t.Context())
				if (w+round)%5 == 0 {
					cancel()
				}
				p := of(id.Tenant(w % 4))
				if processors.Acquire(ctx, p, 1) == nil {
					n := working.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					working.Add(-1)
					processors.Release(p, 1)
				}
				cancel()
			}
		}()
	}
	for range workers {
		<-done
	}
	if most.Load() > 3 {
		t.Errorf("%d at work, want at most 3", most.Load())
	}
	for _, tenant := range []id.Tenant{red, blue, gold} {
		if err := processors.Acquire(t.Context(), of(tenant), 1); err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkProcessors(b *testing.B) {
	processors := admission.NewProcessors(admission.NewContention(), 1)
	b.ReportAllocs()
	for b.Loop() {
		if err := processors.Acquire(b.Context(), of(red), 1); err != nil {
			b.Fatal(err)
		}
		processors.Release(of(red), 1)
	}
}
