package log_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// A ledger whose newest event was received at a time that has not come takes no
// events, and says so, until that time is near. Another one goes on.
func TestAheadOfClock(t *testing.T) {
	registry := prometheus.NewRegistry()
	w := newWorld(t, storagetest.NewModel())
	w.ledgers.Close()
	w.open(log.Options{Metrics: registry})
	ahead := func(want float64) {
		t.Helper()
		if got := gauge(t, registry, "agentledger_ledgers_ahead_of_clock"); got != want {
			t.Errorf("ahead: got %v, want %v", got, want)
		}
	}
	w.mustAppend(red, "first")
	w.Pass(-5*time.Second - time.Millisecond)
	for _, name := range []string{"second", "third"} {
		_, err := w.append(red, name)
		if f := fault.Of(err); f.Kind != fault.Unavailable || f.Code != "clock" || f.RetryAfter == 0 {
			t.Errorf("%s: got %+v", name, f)
		}
	}
	if err := w.ledgers.Timely(w.state(red)); fault.Of(err).Code != "clock" {
		t.Errorf("timely: got %v", err)
	}
	ahead(1)
	w.mustAppend(blue, "first")
	if err := w.ledgers.Timely(w.state(blue)); err != nil {
		t.Errorf("the other organization: %v", err)
	}
	w.Pass(time.Millisecond)
	w.mustAppend(red, "second")
	ahead(0)
	w.audit(nil)
}

// While the clock is held nothing is appended and no ledger is made.
func TestHeldClock(t *testing.T) {
	var held atomic.Bool
	w := newWorld(t, storagetest.NewModel())
	w.ledgers.Close()
	w.open(log.Options{Held: func() error {
		if held.Load() {
			return clock.Refusal("a test")
		}
		return nil
	}})
	w.mustAppend(red, "first")
	held.Store(true)
	if _, err := w.append(red, "second"); fault.Of(err).Code != "clock" {
		t.Errorf("append: got %v", err)
	}
	if _, err := w.ledgers.Create(t.Context(), id.NewTenant(), log.Genesis{Origin: "log.example/o/new"}); fault.Of(err).Code != "clock" {
		t.Errorf("create: got %v", err)
	}
	if err := w.ledgers.Timely(w.state(blue)); fault.Of(err).Code != "clock" {
		t.Errorf("timely: got %v", err)
	}
	held.Store(false)
	w.mustAppend(red, "second")
	w.mustAppend(blue, "first")
	w.audit(nil)
}
