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

// Organizations take turns, whatever the order and number of their requests.
func TestTurnsGoAround(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := admission.NewTurns(admission.NewCompany(), 1)
		if err := turns.Take(t.Context(), of(gold)); err != nil {
			t.Fatal(err)
		}
		var served []id.Tenant // only written by who has the turn
		for _, tenant := range []id.Tenant{red, red, red, red, blue, red, gold, blue} {
			go func() {
				if turns.Take(t.Context(), of(tenant)) == nil {
					served = append(served, tenant)
					turns.Give(of(tenant))
				}
			}()
			synctest.Wait()
		}
		turns.Give(of(gold))
		synctest.Wait()
		if want := []id.Tenant{red, blue, gold, red, blue, red, red, red}; !slices.Equal(served, want) {
			t.Errorf("got %v, want %v", served, want)
		}
	})
}

// Who gives up takes no turn, not the last of its organization either.
func TestTurnsOfWhoGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := admission.NewTurns(admission.NewCompany(), 1)
		if err := turns.Take(t.Context(), of(gold)); err != nil {
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
					if err := turns.Take(ctx, of(tenant)); errors.Is(err, context.Canceled) {
						gaveUp.Add(1)
						return
					}
					served.Add(1)
					turns.Give(of(tenant))
				}()
			}
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		turns.Give(of(gold))
		synctest.Wait()
		if gaveUp.Load() != 3 || served.Load() != 2 {
			t.Errorf("%d gave up and %d were served, want 3 and 2", gaveUp.Load(), served.Load())
		}
		if err := turns.Take(t.Context(), of(red)); err != nil { // the turn is free again
			t.Error(err)
		}
	})
}

// Alone nobody waits. Who comes then gets one turn beside all that was begun, and
// who was alone none before it has given its own back.
func TestTurnsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := admission.NewTurns(admission.NewCompany(), 2)
		for range 4 {
			if err := turns.Take(t.Context(), of(red)); err != nil {
				t.Fatal(err)
			}
		}
		if err := turns.Take(t.Context(), of(blue)); err != nil {
			t.Fatal(err)
		}
		served := map[id.Tenant]int{}
		for _, tenant := range []id.Tenant{red, blue} {
			go func() {
				if turns.Take(t.Context(), of(tenant)) == nil {
					served[tenant]++ // all others are blocked
				}
			}()
			synctest.Wait()
		}
		for given, want := range []map[id.Tenant]int{{}, {}, {}, {}, {red: 1}} {
			if !maps.Equal(served, want) {
				t.Errorf("%d turns given back: served %v, want %v", given, served, want)
			}
			if given < 4 {
				turns.Give(of(red))
				synctest.Wait()
			}
		}
		turns.Give(of(blue))
		synctest.Wait()
		if want := map[id.Tenant]int{red: 1, blue: 1}; !maps.Equal(served, want) {
			t.Errorf("served %v, want %v", served, want)
		}
	})
}

// In company one turn is kept free of any one party, until it is alone again.
func TestTurnsKeepOneFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := admission.NewTurns(admission.NewCompany(), 3)
		for _, tenant := range []id.Tenant{blue, red, red} {
			if err := turns.Take(t.Context(), of(tenant)); err != nil {
				t.Fatal(err)
			}
		}
		turns.Give(of(blue))
		var third atomic.Bool
		go func() { third.Store(turns.Take(t.Context(), of(red)) == nil) }()
		synctest.Wait()
		if third.Load() {
			t.Error("one party has all turns")
		}
		time.Sleep(standstill / 2)
		for range 3 {
			if err := turns.Take(t.Context(), of(gold)); err != nil { // others do not wait
				t.Fatal(err)
			}
			turns.Give(of(gold))
		}
		turns.Give(of(red))
		synctest.Wait()
		if !third.Load() {
			t.Error("not served though a turn was given back")
		}
	})
}

// There are never more at work than there are turns, and no turn gets lost.
func TestTurnsAreKept(t *testing.T) {
	const workers, rounds = 12, 300
	turns := admission.NewTurns(admission.NewCompany(), 3)
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
				if turns.Take(ctx, p) == nil {
					n := working.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					working.Add(-1)
					turns.Give(p)
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
		if err := turns.Take(t.Context(), of(tenant)); err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkTurns(b *testing.B) {
	turns := admission.NewTurns(admission.NewCompany(), 1)
	b.ReportAllocs()
	for b.Loop() {
		if err := turns.Take(b.Context(), of(red)); err != nil {
			b.Fatal(err)
		}
		turns.Give(of(red))
	}
}
