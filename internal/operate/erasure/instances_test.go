package erasure_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// another returns a second instance of the service on the same store, with its own state and caches.
func (w *world) another() *world {
	w.t.Helper()
	second := &world{Service: w.Again(w.t, w.Engine), t: w.t, first: w.first, key: w.key}
	second.open()
	return second
}

// lookedAt runs a function between a retention's reading of the events and its append.
type lookedAt struct {
	erasure.Ledgers
	once func()
}

func (l *lookedAt) Events(
	ctx context.Context, s *log.State, begin, end id.Index, parts storage.Fields,
) iter.Seq2[storage.Event, error] {
	if l.once != nil {
		l.once()
		l.once = nil
	}
	return l.Ledgers.Events(ctx, s, begin, end, parts)
}

// listed is lookedAt for a requested erasure.
type listed struct {
	erasure.Index
	once func()
}

func (l *listed) List(ctx context.Context, t id.Tenant, q index.Query) (index.Page, error) {
	if l.once != nil {
		l.once()
		l.once = nil
	}
	return l.Index.List(ctx, t, q)
}

// A hold that one instance acknowledges stops the erasure and the retention of another instance, even after its
// reading, because the head of the hold guards the append.
func TestHoldOfAnotherInstance(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		for _, way := range []string{"request", "retention"} {
			t.Run(way, func(t *testing.T) {
				w := newWorld(t, ledgertest.On(t, open(t)))
				w.send(red, some()...)
				w.send(blue, some()...)
				if way == "request" {
					w.begin(red, erasure.Wanted{Agent: "agt_a"})
				} else {
					w.retain(red, 1)
					w.Pass(2 * day)
				}
				second := w.another()
				looked := 0
				hold := func() { looked++; w.hold(red, true) }
				if way == "request" {
					second.erasures.Index = &listed{Index: second.index, once: hold}
				} else {
					second.erasures.Ledgers = &lookedAt{Ledgers: second.Ledgers, once: hold}
				}
				second.drain()
				wantText(t, "looks before the hold", looked, 1)
				wantText(t, "under hold", w.left(red), "[e0 e1 e2 e3]")
				w.begin(blue, erasure.Wanted{Agent: "agt_a"})
				w.drain()
				wantText(t, "the other organization", w.left(blue), "[e2 e3]")
				w.hold(red, false)
				w.Pass(time.Hour)
				w.drain()
				want := map[string]string{"request": "[e2 e3]", "retention": "[]"}[way]
				wantText(t, "after the hold", w.left(red), want)
			})
		}
	})
}

// Two instances erase concurrently, and one of them sets the hold: nothing is erased after its answer. How far they get
// depends on the machine, so the race is repeated until there was one.
func TestHoldRacedByTwoInstances(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		for range 10 {
			if raceHold(t, newWorld(t, ledgertest.On(t, open(t)))) {
				return
			}
		}
		t.Error("the hold never came between erasures")
	})
}

// raceHold sets a hold while two instances erase, checks that nothing is erased after it, and reports whether some
// erasures were done before and others were not.
func raceHold(t *testing.T, w *world) bool {
	t.Helper()
	const erasures, early = 90, 10 // even a fast second instance needs a while for the rest
	for n := range erasures {
		name := fmt.Sprintf("r%d", n)
		w.send(red, sent{name, "agt_" + name, "trc", "mia@red", "", "text"})
		w.begin(red, erasure.Wanted{Agent: id.Agent("agt_" + name)})
	}
	w.retain(red, 1)
	second := w.another()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			if _, err := second.erasures.Sweep(t.Context()); err != nil {
				t.Log("second instance:", err) // it lost a race, so the entry stays due
			}
		}
	})
	for range 500 {
		if _, err := w.erasures.Sweep(t.Context()); err != nil {
			t.Log("first instance:", err)
		}
		if w.Pass(time.Second); len(w.left(red)) <= erasures-early {
			break
		}
	}
	w.hold(red, true)
	left := w.left(red)
	w.Pass(2 * day)
	for range 5 {
		if _, err := w.erasures.Sweep(t.Context()); err != nil {
			t.Log("first instance under hold:", err)
		}
	}
	stop()
	running.Wait()
	wantText(t, "left after the hold", w.left(red), left)
	w.wantNothingErasedUnderHold(red)
	return len(left) > 0 && len(left) <= erasures-early
}

// wantNothingErasedUnderHold checks that no statement of an erasure follows that of the hold.
func (w *world) wantNothingErasedUnderHold(tenant id.Tenant) {
	w.t.Helper()
	held := false
	for _, statement := range w.Audit(w.t, tenant) {
		held = held || statement.Kind == "ledger_settings_changed" && containsHold(statement.Payload)
		if held && statement.Kind == "ledger_envelope_erased" {
			w.t.Errorf("erased behind the hold: %s", statement.Payload)
		}
	}
	if !held {
		w.t.Error("no statement of the hold")
	}
}

func containsHold(payload string) bool { return strings.Contains(payload, "legal_hold") }
