package limit_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/limit"
)

// Organizations take turns, whatever the order and number of their requests.
func TestTurnsGoAround(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := limit.NewTurns(1)
		if err := turns.Take(t.Context(), gold); err != nil {
			t.Fatal(err)
		}
		var served []id.Tenant // only written by who has the turn
		for _, tenant := range []id.Tenant{red, red, red, red, blue, red, gold, blue} {
			go func() {
				if turns.Take(t.Context(), tenant) == nil {
					served = append(served, tenant)
					turns.Give()
				}
			}()
			synctest.Wait()
		}
		turns.Give()
		synctest.Wait()
		if want := []id.Tenant{red, blue, gold, red, blue, red, red, red}; !slices.Equal(served, want) {
			t.Errorf("got %v, want %v", served, want)
		}
	})
}

// Who gives up takes no turn, not the last of its organization either.
func TestTurnsOfWhoGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := limit.NewTurns(1)
		if err := turns.Take(t.Context(), gold); err != nil {
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
					if err := turns.Take(ctx, tenant); errors.Is(err, context.Canceled) {
						gaveUp.Add(1)
						return
					}
					served.Add(1)
					turns.Give()
				}()
			}
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		turns.Give()
		synctest.Wait()
		if gaveUp.Load() != 3 || served.Load() != 2 {
			t.Errorf("%d gave up and %d were served, want 3 and 2", gaveUp.Load(), served.Load())
		}
		if err := turns.Take(t.Context(), red); err != nil { // the turn is free again
			t.Error(err)
		}
	})
}

// Alone nobody waits; who comes then waits until there are turns again.
func TestTurnsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := limit.NewTurns(1)
		if err := turns.Take(t.Context(), red); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for range 2 {
			if err := turns.Take(t.Context(), red); err != nil {
				t.Fatal(err)
			}
		}
		served := false
		go func() { served = turns.Take(t.Context(), blue) == nil }()
		for left := 3; left > 0; left-- {
			synctest.Wait()
			if served {
				t.Errorf("served while %d were at work", left)
			}
			turns.Give()
		}
		synctest.Wait()
		if !served {
			t.Error("not served though all turns are free")
		}
	})
}

// There are never more at work than there are turns, and no turn gets lost.
func TestTurnsAreKept(t *testing.T) {
	const workers, rounds = 12, 300
	turns := limit.NewTurns(3)
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
				if turns.Take(ctx, id.Tenant(w%4)) == nil {
					n := working.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					working.Add(-1)
					turns.Give()
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
	for range 3 {
		if err := turns.Take(t.Context(), red); err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkTurns(b *testing.B) {
	turns := limit.NewTurns(1)
	b.ReportAllocs()
	for b.Loop() {
		if err := turns.Take(b.Context(), red); err != nil {
			b.Fatal(err)
		}
		turns.Give()
	}
}
