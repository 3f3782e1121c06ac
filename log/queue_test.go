package log_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// hanging is a store in which each tenant has its own stream, until moved, and in which callers get no answer while
// it hangs.
type hanging struct {
	*storagetest.Model
	mu      sync.Mutex
	moved   map[id.Tenant]int
	appends map[int]chan struct{} // of streams whose appends hang
	entries chan struct{}         // when reads of entries hang
	damaged bool                  // the entries of red are read wrongly
	barrier chan struct{}         // when barriers hang
	refuses int                   // appends of red to reject
}

func newHanging() *hanging {
	h := &hanging{Model: storagetest.NewModel(), moved: map[id.Tenant]int{}, appends: map[int]chan struct{}{}}
	h.Fail(func(b storage.Batch) storagetest.Failure {
		h.mu.Lock()
		defer h.mu.Unlock()
		if b.Tenant != red || h.refuses == 0 {
			return storagetest.NoFailure
		}
		h.refuses--
		return storagetest.Refused
	})
	return h
}

func (h *hanging) do(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

// hang makes the appends of a tenant's stream hang until end is called.
func (h *hanging) hang(t id.Tenant) (end func()) {
	gate, n := make(chan struct{}), h.Stream(t)
	h.do(func() { h.appends[n] = gate })
	return func() {
		h.do(func() { delete(h.appends, n) })
		close(gate)
	}
}

func (h *hanging) Stream(t id.Tenant) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n, moved := h.moved[t]; moved {
		return n
	}
	return int(t)
}

func (h *hanging) Append(batches []storage.Batch) storage.Pending {
	n := h.Stream(batches[0].Tenant)
	h.mu.Lock()
	gate := h.appends[n]
	h.mu.Unlock()
	return gated{h.Model.Append(batches), gate}
}

type gated struct {
	storage.Pending
	gate chan struct{} // nil: open
}

func (g gated) Wait() []error {
	if g.gate != nil {
		<-g.gate
	}
	return g.Pending.Wait()
}

// pass waits at a gate. A nil gate is open.
func pass(ctx context.Context, gate chan struct{}) error {
	if gate == nil {
		return nil
	}
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *hanging) Entries(ctx context.Context, places []storage.Position) []storage.EntryResult {
	h.mu.Lock()
	gate, damaged := h.entries, h.damaged
	h.mu.Unlock()
	if err := pass(ctx, gate); err != nil {
		found := make([]storage.EntryResult, len(places))
		for i := range found {
			found[i].Err = err
		}
		return found
	}
	found := h.Model.Entries(ctx, places)
	for i, p := range places {
		if damaged && p.Tenant == red {
			found[i].Entry.Record[5] ^= 1
		}
	}
	return found
}

func (h *hanging) Barrier(ctx context.Context) error {
	h.mu.Lock()
	gate := h.barrier
	h.mu.Unlock()
	if err := pass(ctx, gate); err != nil {
		return err
	}
	return h.Model.Barrier(ctx)
}

// sent is an append in flight, of a caller that waits at most the given time.
func (w *world) sent(tenant id.Tenant, name string, patience time.Duration) chan error {
	done := make(chan error, 1)
	prepare := w.single(tenant, name, 0)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := w.ledgers.Append(ctx, tenant, prepare)
		done <- err
	}()
	return done
}

// While the appends of one organization hang, appends of another one continue. Callers of the first return when their
// context ends: an append in flight has an unknown outcome, one that only waited was not done and is never committed.
func TestHungStreamHoldsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHanging()
		w := newWorld(t, h)
		registry := prometheus.NewRegistry()
		w.ledgers.Close()
		w.open(log.Options{Metrics: registry})
		w.mustAppend(red, "before")
		w.mustAppend(blue, "before")
		end := h.hang(red)
		out := w.sent(red, "out", 5*time.Second)
		synctest.Wait()
		var waiting []chan error
		for i := range 5 {
			waiting = append(waiting, w.sent(red, fmt.Sprint("waits", i), 4*time.Second))
		}
		for i := range 100 {
			w.mustAppend(blue, fmt.Sprint("e", i))
		}
		time.Sleep(6 * time.Second)
		if err := <-out; !fault.Is(err, fault.OutcomeUnknown) {
			t.Errorf("what is out: got %v, want its outcome unknown", err)
		}
		for _, done := range waiting {
			if err := <-done; !fault.Is(err, fault.Unavailable) || fault.Of(err).Code != "unavailable" {
				t.Errorf("what waits: got %v, want unavailable", err)
			}
		}
		if age := w.ledgers.OldestAppend(); age < 6*time.Second {
			t.Errorf("the oldest append has been out for %v, want 6 s", age)
		}
		wantGauge(t, registry, 6)
		if got := w.state(red).Size(); got != 1 {
			t.Errorf("published while it hangs: size %d, want 1", got)
		}
		end()
		synctest.Wait()
		wantGauge(t, registry, 0)
		if got := w.state(red).Size(); got != 2 {
			t.Errorf("got size %d, want 2: what was withdrawn must not land", got)
		}
		if _, err := w.append(red, "out"); !errors.Is(err, log.ErrDuplicate) {
			t.Errorf("what was out, once more: got %v, want a duplicate", err)
		}
		w.mustAppend(red, "waits0")
		w.audit(nil)
		w.ledgers.Close()
	})
}

// wantGauge compares the age of the oldest append with whole seconds.
func wantGauge(t *testing.T, registry *prometheus.Registry, seconds float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "agentledger_append_oldest_seconds" {
			continue
		}
		if got := f.GetMetric()[0].GetGauge().GetValue(); got != seconds {
			t.Errorf("age of the oldest append: got %v, want %v", got, seconds)
		}
		return
	}
	t.Error("there is no metric of the oldest append")
}

// The number of events that a hanging stream has accepted is bounded, and so is its queue. Neither uses the capacity
// of others.
func TestHungStreamTakesNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHanging()
		w := newWorld(t, h)
		w.ledgers.Close()
		w.open(log.Options{MaxWaiting: 8, MaxWaitingTenant: 8})
		w.mustAppend(blue, "before")
		w.mustAppend(red, "before")
		time.Sleep(2 * time.Second) // alone again, and two appends may be out
		end := h.hang(red)
		var sent []chan error
		for i := range 40 {
			sent = append(sent, w.sent(red, fmt.Sprint("e", i), time.Hour))
			synctest.Wait()
			time.Sleep(300 * time.Millisecond)
		}
		begin := h.hang(blue) // so that what comes has to wait
		var others []chan error
		for i := range 8 {
			others = append(others, w.sent(blue, fmt.Sprint("e", i), time.Hour))
		}
		synctest.Wait()
		begin()
		for _, done := range others {
			if err := <-done; err != nil {
				t.Errorf("the other organization: %v", err)
			}
		}
		end()
		taken := 0
		for _, done := range sent {
			switch err := <-done; {
			case err == nil:
				taken++
			case !fault.Is(err, fault.Overloaded):
				t.Errorf("got %v, want overloaded", err)
			}
		}
		if most := 8 + 2; taken > most {
			t.Errorf("%d events of the hung stream were taken, want %d at most: two out, and what may wait", taken, most)
		}
		w.audit(nil)
		w.ledgers.Close()
	})
}

// A ledger that continues in another stream is published in the order of its events, even if the second finisher is
// faster.
func TestChangedStreamKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHanging()
		w := newWorld(t, h)
		w.mustAppend(red, "before")
		gate := make(chan struct{})
		h.do(func() { h.entries = gate })
		first := w.sent(red, "first", time.Hour)
		synctest.Wait() // its finisher reads back
		h.do(func() { h.entries, h.moved[red] = nil, 99 })
		second := w.sent(red, "second", time.Hour)
		synctest.Wait()
		select {
		case err := <-second:
			t.Errorf("the second one was answered before the first: %v", err)
		default:
		}
		close(gate)
		if err := errors.Join(<-first, <-second); err != nil {
			t.Error(err)
		}
		if got := w.state(red).Size(); got != 3 {
			t.Errorf("got size %d, want 3", got)
		}
		w.audit(nil)
		w.ledgers.Close()
	})
}

// An answer waits only a few seconds for the previous entry to be read back. A read-back that times out does not
// indicate damage. Every later batch reads its own entry back, and damage found there freezes the ledger.
func TestHungReadBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHanging()
		w := newWorld(t, h)
		w.mustAppend(red, "before")
		gate := make(chan struct{})
		h.do(func() { h.entries = gate })
		begin := time.Now()
		r, err := w.append(red, "one")
		if err != nil || !r.ChainValid {
			t.Errorf("while the store hangs: got %+v, %v; want a receipt that calls the chain valid", r, err)
		}
		if waited := time.Since(begin); waited != 5*time.Second { // of the clock of synctest
			t.Errorf("the answer waited %v", waited)
		}
		if f := w.state(red).Fault(); f.Level != log.Healthy {
			t.Errorf("got fault %+v", f)
		}
		close(gate)
		h.do(func() { h.entries = nil })
		if r, err := w.append(red, "two"); err != nil || !r.ChainValid {
			t.Errorf("got %+v, %v; want a receipt that calls the chain valid", r, err)
		}
		h.do(func() { h.damaged = true })
		if r, err := w.append(red, "three"); err != nil || r.ChainValid {
			t.Errorf("damaged: got %+v, %v; want a receipt that does not call the chain valid", r, err)
		}
		if f := w.state(red).Fault(); f.Level != log.Frozen {
			t.Errorf("damaged: got fault %+v", f)
		}
		w.refuses(red, "frozen")
		w.mustAppend(blue, "other")
		w.ledgers.Close()
	})
}

// A ledger whose repair gets no answer is abandoned: its callers are answered, its state can be read, and it
// continues when the store does.
func TestHungRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHanging()
		w := newWorld(t, h)
		w.mustAppend(red, "before")
		gate := make(chan struct{})
		h.do(func() { h.barrier, h.refuses = gate, 1 })
		if _, err := w.append(red, "one"); !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v, want unavailable", err)
		}
		w.mustAppend(blue, "one")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if s, err := w.ledgers.State(ctx, red); err != nil || s.Size() != 1 {
			t.Errorf("the state in memory: %v", err)
		}
		close(gate)
		h.do(func() { h.barrier = nil })
		synctest.Wait() // the repair that was given up ends, or its callers would be told of it once more
		w.mustAppend(red, "one")
		w.audit(nil)
		w.ledgers.Close()
	})
}

// If the store currently rejects an organization, its callers learn after a few attempts that nothing was done.
func TestRefusedAppendsAreUnavailable(t *testing.T) {
	h := newHanging()
	w := newWorld(t, h)
	h.do(func() { h.refuses = 3 })
	_, err := w.append(red, "one")
	if f := fault.Of(err); f.Kind != fault.Unavailable || f.Code != "unavailable" || f.RetryAfter == 0 {
		t.Errorf("got %+v, want unavailable and when to try again", f)
	}
	w.mustAppend(blue, "one")
	w.mustAppend(red, "one")
	w.audit(nil)
}

// Shutdown ends at its deadline and reports what it left. Appends in flight are not canceled.
func TestShutdownOfAHungStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHanging()
		w := newWorld(t, h)
		w.mustAppend(red, "before")
		end := h.hang(red)
		out := w.sent(red, "out", time.Hour)
		synctest.Wait()
		w.mustAppend(blue, "shown")
		shown := w.checkpoint(blue)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err := w.ledgers.Shutdown(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 batches in flight or being repaired, the oldest for 3s") {
			t.Errorf("got %v, want it to name what is out", err)
		}
		end()
		if err := <-out; err != nil {
			t.Error(err)
		}
		w.open(log.Options{})
		if got := w.checkpoint(blue); got != shown || w.state(blue).Fault().Level != log.Healthy {
			t.Errorf("after the next start: got %+v, want %+v", got, shown)
		}
		if got := w.state(red).Size(); got != 2 {
			t.Errorf("after the next start: got size %d, want 2", got)
		}
		w.ledgers.Close()
	})
}
