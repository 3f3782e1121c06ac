package witness

import (
	"net/http"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
)

// last returns the result of the last request to the first witness of a ledger.
func (w *world) last(tenant id.Tenant) WitnessStatus {
	w.t.Helper()
	s, err := w.witnesses.Status(w.t.Context(), tenant)
	if err != nil {
		w.t.Fatal(err)
	}
	return s.Witnesses[0]
}

// countEntries returns the number of ledgers in memory, including those that only wait for the end of a pause.
func (a *roundQueue) countEntries() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.entries)
}

// A log that was refused once is asked about again when the pause ends, even if it does not move and there is no sweep,
// and even after a restart during the pause.
func TestRefusedLogIsAskedAgain(t *testing.T) {
	for name, restart := range map[string]bool{"same process": false, "restarted": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			x := witnesstest.New(t, "x.example") // knows no log
			policy := x.PolicyLine("x") + "quorum x\n"
			w.start(policy)
			w.append(red)
			w.eventually("refused", func() bool { return w.last(red).Last == "refused" })
			if restart {
				w.start(policy)
				w.eventually("the sweep has found it", func() bool { return w.witnesses.queue.countEntries() == 1 })
			}
			w.eventually("nothing left to do", w.idle)
			if _, since := w.witnesses.queue.countAndOldest(); !since.IsZero() {
				t.Error("a log that was refused counts as one that waits")
			}
			x.AddLog(w.key(red))
			w.later(80 * time.Second)
			w.eventually("cosigned", func() bool { return w.by(red, x) == 1 })
			if calls, _ := x.CountCalls(); calls != 2 {
				t.Errorf("got %d calls", calls)
			}
		})
	}
}

// The end of a pause does not change if the log moves meanwhile and another witness is asked.
func TestRefusedLogThatMovesIsAskedAgain(t *testing.T) {
	w := newWorld(t)
	x, y := witnesstest.New(t, "x.example"), w.witness("y.example") // x knows no log
	w.start(x.PolicyLine("x") + y.PolicyLine("y") + "group g any x y\nquorum g\n")
	w.append(red)
	w.eventually("refused by x", func() bool { return w.last(red).Last == "refused" && w.by(red, x, y) == 1 })
	w.append(red)
	w.eventually("cosigned by y", func() bool { return w.by(red, x, y) == 1 })
	w.eventually("nothing left to do", w.idle)
	x.AddLog(w.key(red))
	w.later(80 * time.Second)
	w.eventually("cosigned by both", func() bool { return w.by(red, x, y) == 2 })
}

// Logs that a witness refuses do not delay those that move.
func TestRefusedLogsLeaveRoom(t *testing.T) {
	w := newWorld(t)
	x := witnesstest.New(t, "x.example") // knows no log
	all := w.crowd(30)
	w.start(x.PolicyLine("x")+"quorum x\n", func(o *Options) { o.Pending = 16 })
	for _, tenant := range all {
		w.append(tenant)
		w.eventually("nothing left to do", w.idle)
	}
	if n := w.witnesses.queue.countEntries(); n > 8 {
		t.Errorf("%d places of 16 are taken by logs that do not move", n)
	}
	if got := w.metric("agentledger_witness_overflow_total", ""); got != 0 {
		t.Errorf("%d found no room", got)
	}
}

// A new policy clears the pauses under the old one: an organization's policy for its own log, the service's for all.
func TestChangedPolicyForgetsRefusals(t *testing.T) {
	w := newWorld(t)
	x, own := witnesstest.New(t, "x.example"), witnesstest.New(t, "own.example") // know no log
	policy := x.PolicyLine("x") + "quorum x\n"
	w.start(policy)
	w.append(blue)
	w.eventually("blue is refused", func() bool { return w.last(blue).Last == "refused" })
	w.name(red, org.Witnessing{Policy: own.PolicyLine("own") + "quorum own\n"})
	w.eventually("red is refused by both", func() bool { return w.asks(refused) == 3 })
	own.AddLog(w.key(red))
	x.AddLog(w.key(red))
	x.AddLog(w.key(blue))
	w.name(red, org.Witnessing{Policy: own.PolicyLine("own") + "group g any own\nquorum g\n"})
	w.eventually("red is cosigned by both", func() bool { return w.by(red, x, own) == 2 })
	if calls, _ := x.CountCalls(); calls != 3 || w.last(blue).NotBefore == 0 {
		t.Errorf("%d calls; red's policy ended blue's pause: %+v", calls, w.last(blue))
	}
	w.start(x.PolicyLine("renamed") + "quorum renamed\n")
	w.eventually("blue is cosigned", func() bool { return w.by(blue, x) == 1 })
}

// An organization can have witnesses asked about its own log at once, but about no other.
func TestAskNow(t *testing.T) {
	w := newWorld(t)
	x := witnesstest.New(t, "x.example") // knows no log
	w.start(x.PolicyLine("x") + "quorum x\n")
	w.append(red)
	w.append(blue)
	w.eventually("both are refused", func() bool { return w.last(red).Last == "refused" && w.last(blue).Last == "refused" })
	x.AddLog(w.key(red))
	x.AddLog(w.key(blue))
	if names, err := w.witnesses.AskNow(t.Context(), red, Owner); err != nil || len(names) != 1 || names[0] != "x" {
		t.Fatalf("got %v, %v", names, err)
	}
	w.eventually("red is cosigned", func() bool { return w.by(red, x) == 1 })
	w.eventually("nothing left to do", w.idle)
	if calls, _ := x.CountCalls(); calls != 3 || w.last(blue).Last != "refused" {
		t.Errorf("%d calls; blue: %+v", calls, w.last(blue))
	}
	if _, err := w.witnesses.AskNow(t.Context(), 77, Operator); !fault.Is(err, fault.NotFound) {
		t.Errorf("nobody: got %v", err)
	}
}

// If a shared witness is unavailable, only the operator can have it asked again, not one organization. A witness that
// an organization named is asked again for that organization.
func TestAskNowOfAWitnessThatRests(t *testing.T) {
	w := newWorld(t)
	x, own := w.witness("x.example"), w.witness("own.example")
	away := func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTooManyRequests) }
	x.AnswerWith(away)
	own.AnswerWith(away)
	w.start(x.PolicyLine("x")+"quorum x\n", func(o *Options) {
		o.Clock = func() time.Time { return testStart.Add(time.Duration(w.ahead.Load())) } // it stands still, so pauses do not end
	})
	w.name(red, org.Witnessing{Policy: own.PolicyLine("own") + "quorum own\n"})
	w.eventually("both are away", func() bool { return w.asks(unwell) == 2 })
	calls := func() [2]int {
		a, _ := own.CountCalls()
		b, _ := x.CountCalls()
		return [2]int{a, b}
	}
	askNow := func(by Asker) {
		t.Helper()
		if _, err := w.witnesses.AskNow(t.Context(), red, by); err != nil {
			t.Fatal(err)
		}
		w.ahead.Add(int64(w.witnesses.Interval))
		w.witnesses.queue.signalChange()
	}
	skippedBefore := w.asks(skipped)
	askNow(Owner)
	// Results are counted when the pauses have begun, so what follows ends them.
	w.eventually("asked for the owner", func() bool { return w.asks(unwell) == 3 && w.asks(skipped) > skippedBefore })
	if got, want := calls(), [2]int{2, 1}; got != want {
		t.Errorf("got calls %d, want %d", got, want)
	}
	own.AnswerWith(nil)
	x.AnswerWith(nil)
	askNow(Operator)
	w.eventually("cosigned by both", func() bool { return w.by(red, x, own) == 2 })
	if got, want := calls(), [2]int{3, 2}; got != want {
		t.Errorf("got calls %d, want %d", got, want)
	}
}

// The last answer of a witness is shown with its time. A name that does not exist and one with a private address look
// the same.
func TestLastResult(t *testing.T) {
	w := newWorld(t)
	x := w.witness("x.example")
	x.AddLog(w.key(red))
	w.start(x.PolicyLine("x") + "quorum x\n")
	if got := w.last(red); got.Last != "" || got.At != 0 {
		t.Errorf("before the first ask: got %+v", got)
	}
	began := id.InstantOf(w.now())
	w.append(red)
	w.eventually("cosigned", func() bool { return w.last(red).Last == "cosigned" })
	if got := w.last(red).At; got < began || got > id.InstantOf(w.now()) {
		t.Errorf("asked at %v", got)
	}
	x.AnswerWith(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusBadGateway) })
	w.append(red)
	w.eventually("failed", func() bool { return w.last(red).Last == "failed" })
	x.AnswerWith(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	w.later(time.Minute)
	w.eventually("away", func() bool { return w.last(red).Last == "unwell" })
	if got := w.last(blue); got.Last != "unwell" || got.Acknowledged != 0 {
		t.Errorf("the other organization: got %+v", got)
	}
	x.AnswerWith(nil)
	w.later(time.Hour)
	w.eventually("cosigned again", func() bool { return w.last(red).Last == "cosigned" })
	if got := w.last(blue); got.Last != "" {
		t.Errorf("the other organization: got %+v", got)
	}
}
