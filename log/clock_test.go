package log_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

const step = 400 * 24 * time.Hour

// correct brings a ledger back to the clock's time, with the event that lie derives from the true payload.
func (w *world) correct(tenant id.Tenant, lie func(map[string]any)) (c *log.ClockChange, r log.Receipt, err error) {
	w.t.Helper()
	receipts, err := w.ledgers.Append(w.t.Context(), tenant, func(ctx context.Context, s *log.State) (sub log.Submission, err error) {
		if c, err = w.ledgers.CorrectClock(ctx, s); err != nil {
			return sub, err
		}
		payload := c.Payload("a test")
		if lie != nil {
			lie(payload)
		}
		return log.Submission{Drafts: []log.Draft{statement(w.t, s, fmt.Sprint("corrected-", s.Size()), payload)}, Clock: c}, nil
	})
	if err != nil {
		return c, r, err
	}
	return c, receipts[0], nil
}

// statement is a server event that corrects a clock.
func statement(t *testing.T, s *log.State, name string, payload map[string]any) log.Draft {
	t.Helper()
	return statementOf(t, s, log.ClockKind, name, payload)
}

func statementOf(t *testing.T, s *log.State, kind, name string, payload map[string]any) log.Draft {
	t.Helper()
	key := edkey.NewPrivate()
	unsigned, err := json.Marshal(map[string]any{
		"schema_version": 1, "event_id": name, "organization_id": s.Identity().Organization.String(),
		"trace_id": "ledger", "agent_id": "system", "key_id": "system_x", "emitted_at": "2026-11-20T12:00:00.000Z",
		"actor_type": "system", "actor_principal": "operator", "action_kind": kind, "policy_decision": "allow", "payload": payload,
	})
	if err != nil {
		t.Fatal(err)
	}
	e, err := event.SignEnvelope(unsigned, key)
	if err != nil {
		t.Fatal(err)
	}
	return log.NewDraft(s.Identity(), e, log.Attestation{
		Form: event.FormDigest, PublicKey: did.Multikey(key.Public().Bytes()), Signer: event.SignerSystem, Custody: event.CustodyServer,
		Policy: event.Policy{Declared: id.Allow, Effective: id.Allow}, Disclosure: id.DiscloseRecord,
	})
}

// tryCap sends events under a monthly cap until one is rejected, and returns the number of accepted ones.
func (w *world) tryCap(tenant id.Tenant, prefix string, most uint64) (taken int) {
	w.t.Helper()
	for ; ; taken++ {
		_, err := w.ledgers.Append(w.t.Context(), tenant, w.single(tenant, fmt.Sprint(prefix, taken), most))
		if fault.Is(err, fault.PlanLimit) {
			return taken
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// try sends one event that adds to a budget and reports whether it was allowed.
func (w *world) try(tenant id.Tenant, name string, amount int64, b budget) bool {
	w.t.Helper()
	if _, err := w.ledgers.Append(w.t.Context(), tenant, w.spend(tenant, name, amount, b)); err != nil {
		w.t.Fatal(err)
	}
	s := w.state(tenant)
	e, err := w.ledgers.Event(w.t.Context(), s, s.Size()-1, storage.FieldRecord)
	if err != nil {
		w.t.Fatal(err)
	}
	return e.Effective == id.Allow
}

// calm is a limit to which the step added nothing.
var calm = budget{counter: id.Hash{8}, window: 24 * time.Hour, most: 10}

// limits checks the remainder of 10 after the correction: 7 if the step added 3, and 6 if 4 were added before it. It
// sends 4 events.
func (w *world) limits(b budget) {
	w.t.Helper()
	if w.try(red, "too-much", 8, b) || !w.try(red, "just", 7, b) {
		w.t.Error("the limit of 10 after 3: 8 more are allowed, or 7 are not")
	}
	if w.try(red, "quiet-too-much", 7, calm) || !w.try(red, "quiet-just", 6, calm) {
		w.t.Error("the limit of 10 after 4: 7 more are allowed, or 6 are not")
	}
}

// stepped returns a world in which red accepted events while the clock was a step ahead: 70 in addition to the 5 of
// the right month, and 3 of a limit's 10. The earlier content of the limit was outside of its window as the step saw
// it, and was dropped.
func stepped(t *testing.T) (w *world, b budget) {
	w = newWorld(t, storagetest.NewModel())
	b = budget{counter: id.Hash{7}, window: 24 * time.Hour, most: 10}
	w.try(red, "quiet", 4, calm)
	w.mustAppend(red, "a", "b", "c")
	w.try(red, "four", 4, b)
	w.try(blue, "four", 4, b)
	w.Pass(step)
	for i := range 69 {
		w.mustAppend(red, fmt.Sprint("ahead-", i))
	}
	w.try(red, "three", 3, b)
	w.Pass(-step)
	return w, b
}

func TestCorrectClock(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			w, b := stepped(t)
			again := func() {
				if restart {
					w.reopen(w.store)
				}
			}
			again()
			if _, err := w.append(red, "refused"); fault.Of(err).Code != "clock" {
				t.Fatalf("ahead: got %v", err)
			}
			if _, _, err := w.correct(blue, nil); !fault.Is(err, fault.Conflict) {
				t.Errorf("a ledger that is not ahead: got %v", err)
			}
			now := id.InstantOf(w.Clock())
			c, r, err := w.correct(red, nil)
			if err != nil || r.ReceivedAt != now || c.At != now || c.Before != now+id.Instant(step.Milliseconds()) {
				t.Fatalf("got %+v, %+v, %v", c, r, err)
			}
			if _, _, err := w.correct(red, nil); !fault.Is(err, fault.Conflict) {
				t.Errorf("corrected twice: got %v", err)
			}
			again()
			w.limits(b)
			if got := w.state(red).Used(now); got != 9 {
				t.Errorf("counted in the month: got %d, want 9", got)
			}
			if got := w.tryCap(red, "cap-", 50); got != 41 {
				t.Errorf("the cap of 50 takes %d more, want 41", got)
			}
			w.Pass(24 * time.Hour) // all that was added leaves the window
			if !w.try(red, "anew", 10, b) || !w.try(red, "quiet-anew", 10, calm) {
				t.Error("the limits do not come back")
			}
			w.Pass(step - 24*time.Hour) // to the month that the clock had shown
			again()
			if got := w.tryCap(red, "later-", 50); got != 50 {
				t.Errorf("the later month takes %d, want 50", got)
			}
			if !w.try(blue, "six", 6, b) {
				t.Error("the other organization's limit")
			}
			w.audit(nil)
			if findings := w.fsck(w.store); len(findings) > 0 {
				t.Errorf("fsck: %v", findings)
			}
			if err := w.auditor.RunOnce(t.Context()); err != nil || w.state(red).Fault().Level != log.Healthy {
				t.Errorf("re-verified: %v, %+v", err, w.state(red).Fault())
			}
		})
	}
}

// received_at decreases only at the correcting statement.
func TestFallWithoutStatement(t *testing.T) {
	lies := map[string]func(map[string]any){
		"another newest time": func(p map[string]any) { p["newest_received_at"] = "2026-11-20T12:00:00.000Z" },
		"another time":        func(p map[string]any) { p["received_at"] = "2026-11-20T11:00:00.000Z" },
		"none":                func(p map[string]any) { delete(p, "newest_received_at") },
	}
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			w, _ := stepped(t)
			_, r, err := w.correct(red, lie)
			if err != nil {
				t.Fatal(err)
			}
			w.mustAppend(red, "after")
			findings := w.fsck(w.store)
			if len(findings) == 0 || findings[0].Place != fmt.Sprintf("record %d", r.Index) || !strings.Contains(findings[0].Problem, "received before") {
				t.Errorf("got %v", findings)
			}
			for _, f := range findings {
				if f.Tenant != red {
					t.Errorf("the other organization: %v", f)
				}
			}
		})
	}
}

// A successor of a ledger that was ahead counts the events of its month.
func TestSuccessorOfALedgerAhead(t *testing.T) {
	w, _ := stepped(t)
	w.freeze(red)
	successor := w.succeed(red)
	if got := w.state(successor).Used(id.InstantOf(w.Clock())); got != 5 {
		t.Errorf("carried: got %d, want 5", got)
	}
	w.inHeir(red, successor, "first")
	if got := w.state(successor).Used(id.InstantOf(w.Clock())); got != 6 {
		t.Errorf("counted: got %d, want 6", got)
	}
}

// A correction with an unknown outcome is made once.
func TestCorrectClockOnce(t *testing.T) {
	for name, failure := range map[string]storagetest.Failure{
		"refused": storagetest.Refused, "request lost": storagetest.RequestLost, "answer lost": storagetest.AnswerLost,
	} {
		t.Run(name, func(t *testing.T) {
			w, b := stepped(t)
			failed := false
			w.store.(*storagetest.Model).Fail(func(batch storage.Batch) storagetest.Failure {
				if failed || batch.Tenant != red || len(batch.Events) == 0 {
					return storagetest.NoFailure
				}
				failed = true
				return failure
			})
			if _, _, err := w.correct(red, nil); err != nil && !fault.Is(err, fault.Conflict) {
				t.Fatal(err)
			}
			if !failed {
				t.Fatal("no append failed")
			}
			w.limits(b)
			if got := w.tryCap(red, "cap-", 50); got != 41 {
				t.Errorf("the cap of 50 takes %d more, want 41", got)
			}
			corrections := 0
			s := w.state(red)
			for e, err := range w.ledgers.Events(t.Context(), s, 0, s.Size(), storage.FieldRecord) {
				if err != nil {
					t.Fatal(err)
				}
				if e.ActionKind == log.ClockKind {
					corrections++
				}
			}
			if findings := w.fsck(w.store); corrections != 1 || len(findings) > 0 {
				t.Errorf("%d corrections, fsck: %v", corrections, findings)
			}
		})
	}
}

// A corrected ledger is the same in another store, even if its import was interrupted at any event.
func TestImportOfACorrectedLedger(t *testing.T) {
	w, b := stepped(t)
	if _, _, err := w.correct(red, nil); err != nil {
		t.Fatal(err)
	}
	w.try(red, "more", 2, b)
	w.Pass(step)
	w.mustAppend(red, "in-the-later-month")
	w.Pass(-step)
	if _, _, err := w.correct(red, nil); err != nil {
		t.Fatal(err)
	}
	w.mustAppend(red, "last")
	s := w.state(red)
	var events []storage.Event
	for e, err := range w.ledgers.Events(t.Context(), s, 0, s.Size(), storage.FieldRecord|storage.FieldEnvelope) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	identity, err := w.store.Get(t.Context(), red, "ledger", "")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{log.CounterOf(2026, 11), log.CounterOf(2027, 12)}
	want, err := w.store.Counters(t.Context(), red, names)
	if err != nil || want[1] != 0 {
		t.Fatalf("counters: got %v, %v", want, err)
	}
	for stop := 70; stop <= len(events); stop++ {
		there := &world{t: t, store: storagetest.NewModel(), keyring: w.keyring, anchors: t.TempDir(), agent: w.agent, fatal: w.fatal, Time: new(ledgertest.Time)}
		for _, part := range [][]storage.Event{events[:stop], events[stop:]} {
			there.open(log.Options{Importing: true})
			in, err := audit.BeginImport(t.Context(), there.ledgers, there.store, red, identity)
			if err != nil {
				t.Fatal(err)
			}
			wait, err := in.Append(t.Context(), part)
			if err != nil {
				t.Fatal(err)
			}
			if err := wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if stop == len(events) || len(part) == len(events)-stop {
				if err := in.Open(t.Context(), s.Checkpoint(), s.ConfigVersion(), nil); err != nil {
					t.Fatal(err)
				}
			}
			there.ledgers.Close()
			if stop == len(events) {
				break
			}
		}
		got, err := there.store.Counters(t.Context(), red, names)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("stopped at %d: counters %v, %v; want %v", stop, got, err, want)
		}
		if findings := there.fsck(there.store); len(findings) > 0 {
			t.Errorf("stopped at %d: fsck: %v", stop, findings)
		}
	}
}

// An event committed after a correction was prepared is counted: the correction is prepared again.
func TestCorrectionBehindAnotherEvent(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	w.Pass(time.Hour)
	w.mustAppend(red, "early")
	w.Pass(-time.Hour)
	tries := 0
	_, err := w.ledgers.Append(t.Context(), red, func(ctx context.Context, s *log.State) (sub log.Submission, err error) {
		if sub.Clock, err = w.ledgers.CorrectClock(ctx, s); err != nil {
			return sub, err
		}
		if tries++; tries == 1 {
			w.Pass(time.Hour)
			w.mustAppend(red, "meanwhile")
			w.Pass(-time.Hour)
		}
		sub.Drafts = []log.Draft{statement(t, s, "corrected", sub.Clock.Payload("a test"))}
		return sub, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if used := w.state(red).Used(id.InstantOf(w.Clock())); used != 2 || tries != 2 {
		t.Errorf("got %d counted events after %d tries, want 2 and 2", used, tries)
	}
	w.mustAppend(blue, "neighbour")
	w.audit(nil)
}

// If the latest event of a ledger is in the future, the ledger rejects events with that reason until that time is
// near. Another ledger is not affected.
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

// While the clock is held, nothing is appended and no ledger is created.
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
