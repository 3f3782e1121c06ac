package erasure_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// A hold refuses requested erasures, stops running ones, and ends when an owner says so.
func TestHold(t *testing.T) {
	w := newWorld(t, ledgertest.New(t))
	w.send(red, some()...)
	w.send(blue, some()...)
	made := w.begin(red, erasure.Wanted{Agent: "agt_a"})
	w.hold(red, true)
	_, err := w.erasures.Ask(t.Context(), red, ann, erasure.Wanted{Agent: "agt_b", Reason: erasure.ByRequest})
	refused(t, "requested under hold", err, fault.Conflict, "legal_hold")
	_, err = w.erasures.AskForEvent(t.Context(), red, ann, "e0", erasure.ByRequest)
	refused(t, "an event under hold", err, fault.Conflict, "legal_hold")
	other := w.begin(blue, erasure.Wanted{Agent: "agt_a"})
	w.drain()
	wantText(t, "under hold", w.left(red), "[e0 e1 e2 e3]")
	wantText(t, "state", w.find(red, made.ID).State, erasure.Held)
	wantText(t, "the other organization", w.left(blue), "[e2 e3]")
	wantText(t, "state of the other", w.find(blue, other.ID).State, erasure.Done)
	w.Pass(time.Hour)
	w.drain()
	wantText(t, "an hour later", w.left(red), "[e0 e1 e2 e3]")
	w.hold(red, false)
	w.Pass(2 * time.Minute)
	w.drain()
	wantText(t, "after the hold", w.left(red), "[e2 e3]")
	wantText(t, "state after the hold", w.find(red, made.ID).State, erasure.Done)
}

// between runs a function between an erasure's reading of the approvals and its append.
type between struct {
	erasure.ApprovalList
	once func()
}

func (b *between) List(ctx context.Context, t id.Tenant, f approval.Filter, before approval.ID, limit int) (approval.Page, error) {
	if b.once != nil {
		b.once()
		b.once = nil
	}
	return b.ApprovalList.List(ctx, t, f, before, limit)
}

// A hold between that reading and the append is in time, for envelopes and for payloads.
func TestHoldBetweenLookAndAppend(t *testing.T) {
	w := newWorld(t, ledgertest.New(t))
	w.furnish(red)
	e := sent{"paid", string(w.first[red]), "trc_pay", "mia@red", "acme.refund", "canary"}
	w.ask(red, w.question(red, e))
	w.send(red, e)
	b := &between{ApprovalList: w.approvals}
	w.erasures.Lists = b
	made := w.begin(red, erasure.Wanted{Agent: w.first[red]})
	b.once = func() { w.hold(red, true) }
	w.drain()
	wantText(t, "left", w.left(red), "[paid]")
	if got := w.places(red, e.text); len(got) < 2 {
		t.Errorf("the payload is only at %v", got)
	}
	wantText(t, "state", w.find(red, made.ID).State, erasure.Held)
}

// Whoever wins the race, nothing is erased after the hold was acknowledged: the statement about each erasure precedes
// that of the hold.
func TestHoldRaced(t *testing.T) {
	w := newWorld(t, ledgertest.New(t))
	for n := range 40 {
		name := fmt.Sprintf("r%d", n)
		w.send(red, sent{name, "agt_" + name, "trc", "mia@red", "", "text"})
		w.begin(red, erasure.Wanted{Agent: id.Agent("agt_" + name)})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for more := true; more; {
			var err error
			if more, err = w.erasures.Sweep(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}()
	for len(w.left(red)) > 30 {
	}
	w.hold(red, true)
	left := w.left(red)
	<-done
	w.drain()
	wantText(t, "left after the hold", w.left(red), left)
	t.Logf("the hold came before %d of 40 erasures", len(left))
	held := false
	for _, statement := range w.Audit(t, red) {
		held = held || statement.Kind == "ledger_settings_changed"
		if held && statement.Kind == "ledger_envelope_erased" {
			t.Errorf("erased behind the hold: %s", statement.Payload)
		}
	}
}

const day = 24 * time.Hour

func (w *world) retain(tenant id.Tenant, days int) {
	w.t.Helper()
	w.patch(tenant, org.Patch{RetentionDays: &days})
}

// Envelopes are erased in the hour in which they become too old, and the payloads of completed approvals with them.
// Nothing is erased in an organization without retention or under a hold.
func TestRetention(t *testing.T) {
	w := newWorld(t, ledgertest.New(t))
	w.furnish(red)
	e := sent{"paid", string(w.first[red]), "trc_pay", "mia@red", "acme.refund", "canary"}
	pending := w.ask(red, w.question(red, e))
	w.send(red, e)
	w.send(red, some()[:2]...)
	w.send(blue, some()...)
	w.retain(red, 3)
	w.Pass(2 * day)
	w.send(red, some()[2:]...)
	w.drain()
	wantText(t, "after two days", w.left(red), "[paid e0 e1 e2 e3]")
	w.Pass(day)
	w.drain()
	wantText(t, "after three days", w.left(red), "[paid e0 e1 e2 e3]")
	w.Pass(time.Hour)
	w.drain()
	wantText(t, "an hour later", w.left(red), "[e2 e3]")
	if found, err := w.approvals.Find(t.Context(), red, pending.ID); err != nil || found.ErasedAt != 0 {
		t.Errorf("an approval that nobody has ended: got %+v, %v", found, err)
	}
	if err := w.approvals.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.hold(red, true)
	w.Pass(10 * day)
	w.drain()
	wantText(t, "under hold", w.left(red), "[e2 e3]")
	w.hold(red, false)
	w.Pass(time.Hour)
	w.drain()
	wantText(t, "after the hold", w.left(red), "[]")
	wantText(t, "places of the text", w.places(red, e.text), "[]")
	wantText(t, "the other organization", w.left(blue), "[e0 e1 e2 e3]")
	for _, statement := range w.Audit(t, red) {
		if statement.Kind == "ledger_envelope_erased" && statement.Principal != "operator" {
			t.Errorf("got %+v", statement)
		}
	}
}

// However often the setting changes, one check per hour is due. A setting of 0 ends the checks.
func TestRetentionChanges(t *testing.T) {
	w := newWorld(t, ledgertest.New(t))
	w.send(red, some()...)
	for _, days := range []int{9, 8, 7, 7, 6} {
		w.retain(red, days)
		w.Pass(time.Minute)
		w.drain()
	}
	for range 30 {
		w.Pass(time.Hour)
		w.drain()
		due, err := w.Engine.Scan(t.Context(), id.Service, "erasure_due", "", "", 10)
		if err != nil || len(due) != 1 {
			t.Fatalf("due: got %v, %v", due, err)
		}
	}
	w.retain(red, 0)
	w.Pass(20 * day)
	w.drain()
	wantText(t, "kept for ever", w.left(red), "[e0 e1 e2 e3]")
	w.retain(red, 1)
	w.drain()
	wantText(t, "with a retention again", w.left(red), "[]")
	for _, days := range []int{-1, org.MaxRetentionDays + 1} {
		_, err := w.orgs.Change(t.Context(), red, ann, org.Patch{RetentionDays: &days, BeginRetention: w.erasures.BeginRetention})
		refused(t, fmt.Sprint(days), err, fault.Invalid, "")
	}
}

// Reading records which events a retention reads.
type reading struct {
	erasure.Ledgers
	read *int
}

func (r reading) Events(ctx context.Context, s *log.State, begin, end id.Index, parts storage.Fields) iter.Seq2[storage.Event, error] {
	return func(yield func(storage.Event, error) bool) {
		for e, err := range r.Ledgers.Events(ctx, s, begin, end, parts) {
			if *r.read++; !yield(e, err) {
				return
			}
		}
	}
}

// A retention does not read again the events that it has processed.
func TestRetentionReadsOnce(t *testing.T) {
	w := newWorld(t, ledgertest.New(t))
	read := 0
	w.erasures.Ledgers = reading{w.Ledgers, &read}
	w.send(red, some()...)
	w.retain(red, 1)
	w.Pass(2 * day)
	w.drain()
	read = 0
	for range 5 {
		w.Pass(time.Hour)
		w.drain()
	}
	if size := int(w.State(t, red).Size()); read > 5*size/2 {
		t.Errorf("read %d events of %d in five hours", read, size)
	}
}

// Two organizations with many erasures append in turn.
func TestTurns(t *testing.T) {
	w := newWorld(t, ledgertest.New(t))
	for n := range 20 {
		e := sent{fmt.Sprintf("e%d", n), fmt.Sprintf("agt_%d", n), "trc", "mia@red", "", "text"}
		w.send(red, e)
		w.begin(red, erasure.Wanted{Agent: id.Agent(e.agent)})
	}
	w.send(blue, some()...)
	made := w.begin(blue, erasure.Wanted{Agent: "agt_a"})
	sweeps := 0
	for w.find(blue, made.ID).State != erasure.Done {
		if _, err := w.erasures.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if sweeps++; sweeps > 10 {
			t.Fatal("the other organization waits for the first one")
		}
	}
	if got := len(w.left(red)); got < 15 {
		t.Errorf("%d events of the first one are left", got)
	}
}
