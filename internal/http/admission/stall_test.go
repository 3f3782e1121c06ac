package admission_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
)

// stallTime is how long stalled work may block others.
const stallTime = 200 * time.Millisecond

// contended returns contention between two tenants for the whole test.
func contended(t *testing.T) *admission.Contention {
	c := admission.NewContention()
	meet := func() {
		c.Note(of(red))
		c.Note(of(blue))
	}
	meet()
	t.Cleanup(func() { time.Sleep(time.Second) }) // until the last meeting
	go func() {
		for t.Context().Err() == nil {
			time.Sleep(time.Second / 2)
			meet()
		}
	}()
	return c
}

// Stalled work blocks neither its own organization nor others for long. When it has ended, its processors are available
// again.
func TestProcessorsOfWorkThatHangs(t *testing.T) {
	for _, who := range []id.Tenant{red, blue, gold} {
		synctest.Test(t, func(t *testing.T) {
			const workers = 2
			processors := admission.NewProcessors(contended(t), workers)
			for _, hung := range []id.Tenant{red, blue} { // all processors there are
				if err := processors.Acquire(t.Context(), of(hung), 1); err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			for range 10 {
				if err := processors.Acquire(t.Context(), of(who), 1); err != nil {
					t.Fatal(err)
				}
				processors.Release(of(who), 1)
			}
			if waited := time.Since(began); waited > 2*stallTime {
				t.Errorf("ten processors beside work that hangs took %v", waited)
			}
			for _, hung := range []id.Tenant{red, blue} {
				processors.Release(of(hung), 1)
			}
			time.Sleep(time.Second)
			var held atomic.Int32
			for _, p := range []id.Tenant{red, blue, gold, red, blue} {
				go func() {
					if processors.Acquire(t.Context(), of(p), 1) == nil {
						held.Add(1)
					}
				}()
				synctest.Wait()
			}
			if n := held.Load(); n != workers {
				t.Errorf("later %d work at a time, want %d", n, workers)
			}
		})
	}
}

// Work that makes progress counts, however long each piece takes.
func TestProcessorsOfLongWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		processors := admission.NewProcessors(contended(t), 2)
		var working, most atomic.Int32
		for range 40 {
			go func() {
				if processors.Acquire(t.Context(), of(red), 1) != nil {
					return
				}
				most.Store(max(most.Load(), working.Add(1)))
				time.Sleep(stallTime / 2)
				working.Add(-1)
				processors.Release(of(red), 1)
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		if n := most.Load(); n != 1 {
			t.Errorf("%d of one party worked at a time, want 1", n)
		}
	})
}

// After a while, stalled requests let others of their organization proceed. When they end, the organization has its
// share and no more.
func TestSlotsOfWorkThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const share = 4
		slots := admission.NewSlots(contended(t), share)
		enter := func() {
			if err := slots.Acquire(t.Context(), of(red), 1); err != nil {
				t.Error(err)
			}
		}
		for range share {
			enter()
		}
		began := time.Now()
		for range 3 * share { // they hang too
			go enter()
		}
		synctest.Wait()
		enter()
		slots.Release(of(red), 1)
		if waited := time.Since(began); waited > stallTime {
			t.Errorf("waited %v behind requests that hang, want at most %v", waited, stallTime)
		}
		for range 4 * share {
			slots.Release(of(red), 1)
		}
		var inside atomic.Int32
		for range 3 * share {
			go func() {
				enter()
				inside.Add(1)
			}()
			synctest.Wait()
		}
		if n := inside.Load(); n != share {
			t.Errorf("later %d are at work, want %d", n, share)
		}
		time.Sleep(2 * stallTime) // those would hang as well
		for range 3 * share {
			slots.Release(of(red), 1)
		}
	})
}
