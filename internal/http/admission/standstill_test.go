package admission_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
)

// standstill is how long work may hold up others that does not go on.
const standstill = 200 * time.Millisecond

// inCompany returns company in which two parties stay for as long as the test wants.
func inCompany(t *testing.T) *admission.Company {
	c := admission.NewCompany()
	meet := func() {
		c.Came(of(red))
		c.Came(of(blue))
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

// Turns of work that hangs hold up nobody for long, neither its own party nor
// others, and are turns again for others when it has ended.
func TestTurnsOfWorkThatHangs(t *testing.T) {
	for _, who := range []id.Tenant{red, blue, gold} {
		synctest.Test(t, func(t *testing.T) {
			const workers = 2
			turns := admission.NewTurns(inCompany(t), workers)
			for _, hung := range []id.Tenant{red, blue} { // all turns there are
				if err := turns.Take(t.Context(), of(hung)); err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			for range 10 {
				if err := turns.Take(t.Context(), of(who)); err != nil {
					t.Fatal(err)
				}
				turns.Give(of(who))
			}
			if waited := time.Since(began); waited > 2*standstill {
				t.Errorf("ten turns beside work that hangs took %v", waited)
			}
			for _, hung := range []id.Tenant{red, blue} {
				turns.Give(of(hung))
			}
			time.Sleep(time.Second)
			var held atomic.Int32
			for _, p := range []id.Tenant{red, blue, gold, red, blue} {
				go func() {
					if turns.Take(t.Context(), of(p)) == nil {
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

// Work that goes on is counted, however long each piece of it takes.
func TestTurnsOfLongWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := admission.NewTurns(inCompany(t), 2)
		var working, most atomic.Int32
		for range 40 {
			go func() {
				if turns.Take(t.Context(), of(red)) != nil {
					return
				}
				most.Store(max(most.Load(), working.Add(1)))
				time.Sleep(standstill / 2)
				working.Add(-1)
				turns.Give(of(red))
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		if n := most.Load(); n != 1 {
			t.Errorf("%d of one party worked at a time, want 1", n)
		}
	})
}

// Requests that hang at work let the others of their party go to work after a while;
// when they end, the party has its share and no more.
func TestLobbyOfWorkThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const share = 4
		lobby := admission.NewLobby(inCompany(t), share)
		enter := func() {
			if err := lobby.Enter(t.Context(), of(red), 1); err != nil {
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
		lobby.Leave(of(red), 1)
		if waited := time.Since(began); waited > standstill {
			t.Errorf("waited %v behind requests that hang, want at most %v", waited, standstill)
		}
		for range 4 * share {
			lobby.Leave(of(red), 1)
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
		time.Sleep(2 * standstill) // those would hang as well
		for range 3 * share {
			lobby.Leave(of(red), 1)
		}
	})
}
