package log_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// budget is a limit: events above most are denied.
type budget struct {
	counter id.Hash
	window  time.Duration
	most    int64
}

// spend prepares an event that adds to budgets and is denied if it exceeds one of them.
func (w *world) spend(tenant id.Tenant, name string, amount int64, budgets ...budget) log.Prepare {
	e := w.envelope(tenant, name)
	return func(_ context.Context, s *log.State) (log.Submission, error) {
		a := w.agent.Attestation(e)
		for _, b := range budgets {
			a.Claims = append(a.Claims, log.Claim{Counter: b.counter, Window: b.window, Added: decimal.FromInt(amount)})
		}
		a.Decide = func(before []decimal.Decimal) event.Policy {
			p := event.Policy{Evaluated: true, Declared: id.Allow, Effective: id.Allow}
			text := []byte{'['}
			for i, b := range budgets {
				after, err := before[i].Add(decimal.FromInt(amount))
				if err != nil || after.Cmp(decimal.FromInt(b.most)) > 0 {
					p.Effective = id.Deny
				}
				if i > 0 {
					text = append(text, ',')
				}
				text = fmt.Appendf(text, `{"added":"%d","before":"%s","limit_id":"%d"}`, amount, before[i], i)
			}
			p.Limits = append(text, ']')
			return p
		}
		return log.Submission{Drafts: []log.Draft{log.NewDraft(s.Identity(), e, a)}}, nil
	}
}

// spent returns a record's tally of the first budget.
type spent struct {
	at            id.Instant
	before, added string
	allowed       bool
}

func (w *world) spent(tenant id.Tenant) (all []spent) {
	w.t.Helper()
	s := w.state(tenant)
	for e, err := range w.ledgers.Events(w.t.Context(), s, 0, s.Size(), storage.FieldRecord) {
		if err != nil {
			w.t.Fatal(err)
		}
		r, err := event.ParseRecord(e.Record)
		if err != nil {
			w.t.Fatal(err)
		}
		var added, before string
		if _, err := fmt.Sscanf(string(r.Policy.Limits), `[{"added":%q,"before":%q`, &added, &before); err != nil {
			w.t.Fatalf("limits %s: %v", r.Policy.Limits, err)
		}
		if e.Effective != r.Policy.Effective {
			w.t.Errorf("column says %v, record %v", e.Effective, r.Policy.Effective)
		}
		all = append(all, spent{r.ReceivedAt, before, added, r.Policy.Effective == id.Allow})
	}
	return all
}

// balanced checks each record against the earlier ones, and that the budget is never exceeded.
func (w *world) balanced(tenant id.Tenant, b budget) {
	w.t.Helper()
	all := w.spent(tenant)
	for i, e := range all {
		var before, added int64
		fmt.Sscan(e.added, &added)
		for _, earlier := range all[:i] {
			var n int64
			if fmt.Sscan(earlier.added, &n); earlier.allowed && earlier.at > e.at-id.Instant(b.window.Milliseconds()) {
				before += n
			}
		}
		if e.before != fmt.Sprint(before) || e.allowed != (before+added <= b.most) {
			w.t.Errorf("event %d: before %s, allowed %v; want before %d with %d of %d", i, e.before, e.allowed, before, added, b.most)
		}
	}
}

func allowed(all []spent) int {
	return len(slices.DeleteFunc(all, func(e spent) bool { return !e.allowed }))
}

// rush sends n events of 1 concurrently.
func (w *world) rush(tenant id.Tenant, prefix string, n int, b budget) (landed int) {
	var group sync.WaitGroup
	var mu sync.Mutex
	for i := range n {
		group.Go(func() {
			if _, err := w.ledgers.Append(w.t.Context(), tenant, w.spend(tenant, fmt.Sprint(prefix, i), 1, b)); err == nil {
				mu.Lock()
				landed++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return landed
}

// A hundred concurrent events for each of two organizations that use the same counter, in two rounds with a restart
// between them, and once more after the window.
func TestLimitUnderConcurrency(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	b := budget{id.Hash{7}, time.Minute, 30}
	for round, want := range []int{30, 30, 60} {
		var group sync.WaitGroup
		for _, tenant := range []id.Tenant{red, blue} {
			group.Go(func() { w.rush(tenant, fmt.Sprint("r", round, "-"), 100, b) })
		}
		group.Wait()
		for _, tenant := range []id.Tenant{red, blue} {
			w.balanced(tenant, b)
			if got := allowed(w.spent(tenant)); got != want {
				t.Errorf("round %d: got %d allowed, want %d", round, got, want)
			}
		}
		w.reopen(model)
		if round == 1 {
			w.Pass(time.Minute)
		}
	}
	if findings := w.fsck(model); len(findings) > 0 {
		t.Errorf("fsck: %v", findings)
	}
}

// Appends fail in each way, at every position: their additions are not counted unless the append was applied after
// all.
func TestFailedAppendsDoNotCount(t *testing.T) {
	for name, failure := range map[string]storagetest.Failure{
		"refused": storagetest.Refused, "unknown and not applied": storagetest.RequestLost, "unknown and yet applied": storagetest.AnswerLost,
	} {
		for _, every := range []int{1, 2, 3} {
			t.Run(fmt.Sprint(name, every), func(t *testing.T) {
				model := storagetest.NewModel()
				w := newWorld(t, model)
				b := budget{id.Hash{7}, time.Minute, 60}
				n := 0
				model.Fail(func(storage.Batch) storagetest.Failure {
					if n++; n%every == 0 && n < 30 {
						return failure
					}
					return storagetest.NoFailure
				})
				w.rush(red, "a", 50, b)
				model.Fail(nil)
				if landed := w.rush(red, "b", 50, b); landed != 50 {
					t.Errorf("%d of 50 landed when nothing fails", landed)
				}
				w.balanced(red, b)
				w.reopen(model)
				w.rush(red, "c", 50, b)
				w.balanced(red, b)
				if got := allowed(w.spent(red)); got != 60 {
					t.Errorf("got %d allowed, want 60", got)
				}
			})
		}
	}
}

// More counters than the cache holds, each used repeatedly.
func TestManyCounters(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	const counters, rounds = 400, 3
	for round := range rounds {
		var group sync.WaitGroup
		for sender := range 8 {
			group.Go(func() {
				for i := sender; i < counters; i += 8 {
					b := budget{id.Hash{1, byte(i), byte(i >> 8)}, time.Hour, 2}
					if _, err := w.ledgers.Append(t.Context(), red, w.spend(red, fmt.Sprint(round, "-", i), 1, b)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
	}
	if got := allowed(w.spent(red)); got != 2*counters {
		t.Errorf("got %d allowed, want 2 of each of %d", got, counters)
	}
}

// An event that one of its limits stops adds to none of them. Several limits apply in order.
func TestSeveralLimits(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	wide, narrow := budget{id.Hash{1}, time.Hour, 10}, budget{id.Hash{2}, time.Minute, 3}
	amounts := []int64{2, 2, 1, 1, 9}
	prepares := make([]log.Prepare, len(amounts))
	for i, n := range amounts {
		prepares[i] = w.spend(red, fmt.Sprint("e", i), n, wide, narrow)
	}
	for _, o := range w.ledgers.AppendAll(t.Context(), red, prepares) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
	}
	for i, want := range []spent{{before: "0", allowed: true}, {before: "2"}, {before: "2", allowed: true}, {before: "3"}, {before: "3"}} {
		if got := w.spent(red)[i]; got.before != want.before || got.allowed != want.allowed {
			t.Errorf("event %d: got before %s, allowed %v, want %s, %v", i, got.before, got.allowed, want.before, want.allowed)
		}
	}
}

// Peeking changes nothing, and shows the values that an event would get.
func TestCounted(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	b := budget{id.Hash{1}, time.Minute, 10}
	claims := []log.Claim{{Counter: b.counter, Window: b.window, Added: decimal.FromInt(1)}, {Counter: id.Hash{9}, Window: b.window}}
	look := func(tenant id.Tenant, want int64) {
		t.Helper()
		for range 2 {
			got, err := w.ledgers.Counted(t.Context(), tenant, claims, id.InstantOf(w.Clock()))
			if err != nil || !slices.Equal(got, []decimal.Decimal{decimal.FromInt(want), {}}) {
				t.Errorf("got %v, %v, want %d and 0", got, err, want)
			}
		}
	}
	look(red, 0)
	w.rush(red, "a", 4, b)
	look(red, 4)
	look(blue, 0)
	w.Pass(time.Minute - time.Millisecond)
	look(red, 4)
	w.Pass(time.Millisecond)
	look(red, 0)
}

// A counter with an impossible value stops the events that use it, and no others.
func TestDamagedCounter(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	b := budget{id.Hash{1}, time.Minute, 10}
	w.rush(red, "a", 1, b)
	change := storage.Change{Kind: "ledger_window", Key: b.counter.String(), Value: []byte("x"), If: storage.AnyVersion}
	if err := model.Write(t.Context(), red, []storage.Change{change}); err != nil {
		t.Fatal(err)
	}
	w.reopen(model)
	if _, err := w.ledgers.Append(t.Context(), red, w.spend(red, "b", 1, b)); err == nil {
		t.Error("an event was decided by a counter that can't be read")
	}
	w.mustAppend(red, "other")
}
