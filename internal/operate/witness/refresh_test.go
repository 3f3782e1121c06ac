package witness

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
)

// cosignedAt returns when a witness cosigned the published newest checkpoint of a ledger, or 0 if it did not.
func (w *world) cosignedAt(tenant id.Tenant, x *witnesstest.Witness) id.Instant {
	w.t.Helper()
	note, err := w.witnesses.Checkpoint(w.t.Context(), w.State(w.t, tenant))
	if err != nil {
		w.t.Fatal(err)
	}
	parsed, err := tlog.ParseNote(note)
	if err != nil {
		w.t.Fatal(err)
	}
	at, err := x.Signer.Key().Cosigned(parsed)
	if err != nil {
		return 0
	}
	return at
}

// age returns the metric of the oldest quorum.
func (w *world) age() time.Duration {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "agentledger_witness_oldest_quorum_seconds" {
			return time.Duration(f.GetMetric()[0].GetGauge().GetValue() * float64(time.Second))
		}
	}
	w.t.Fatal("no metric")
	return 0
}

// A ledger that does not move gets new cosignatures of the same checkpoint within an hour, but not within half an hour.
func TestQuietLedgersAreCosignedAgain(t *testing.T) {
	w := newWorld(t)
	x, y := w.witness("x.example"), w.witness("y.example")
	x.SetClock(w.now)
	y.SetClock(w.now)
	w.append(red)
	w.append(blue)
	w.start(x.PolicyLine("x") + y.PolicyLine("y") + "group both all x y\nquorum both\n")
	w.eventually("both are cosigned", func() bool { return w.by(red, x, y) == 2 && w.by(blue, x, y) == 2 && w.idle() })
	first, size := w.cosignedAt(red, x), w.State(t, red).Size()
	calls, _ := x.CountCalls()
	for range 3 { // an early check asks no witness
		w.pass(9 * time.Minute)
	}
	w.eventually("idle", w.idle)
	if again, _ := x.CountCalls(); again != calls {
		t.Errorf("%d calls within half an hour", again-calls)
	}
	for round := range 3 {
		began := id.InstantOf(w.now())
		w.pass(61 * time.Minute)
		w.eventually("cosigned again", func() bool {
			for _, tenant := range []id.Tenant{red, blue} {
				if w.cosignedAt(tenant, x) <= began || w.cosignedAt(tenant, y) <= began {
					return false
				}
			}
			return true
		})
		w.eventually("idle", w.idle)
		w.pass(0)
		if age := w.age(); age > 2*time.Minute {
			t.Errorf("round %d: the oldest quorum is of %s ago", round, age)
		}
	}
	if w.cosignedAt(red, x) <= first || w.State(t, red).Size() != size {
		t.Error("the checkpoint is not the same, or its cosignature not newer")
	}
	if waits := w.witnesses.Waits(); len(waits) != 0 {
		t.Errorf("%v wait for their witnesses", waits)
	}
}

// If a witness does not answer, the old cosignature stays, the witness is asked again after its pause, and no ledger
// counts as waiting.
func TestRefreshFails(t *testing.T) {
	w := newWorld(t)
	x := w.witness("x.example")
	x.SetClock(w.now)
	w.append(red)
	w.start(x.PolicyLine("x") + "quorum x\n")
	w.eventually("cosigned", func() bool { return w.by(red, x) == 1 && w.idle() })
	first := w.cosignedAt(red, x)
	for name, answer := range map[string]http.HandlerFunc{
		"refused": func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusForbidden) },
		"failed":  func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusInternalServerError) },
		"unwell": func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Retry-After", "60")
			rw.WriteHeader(http.StatusServiceUnavailable)
		},
	} {
		x.AnswerWith(answer)
		before, _ := x.CountCalls()
		w.pass(61 * time.Minute)
		w.eventually(name, func() bool { calls, _ := x.CountCalls(); return calls > before && w.ended() })
		if waits := w.witnesses.Waits(); len(waits) != 0 {
			t.Errorf("%s: %v wait for their witnesses", name, waits)
		}
		if at := w.cosignedAt(red, x); at < first {
			t.Errorf("%s: the cosignature is lost", name)
		}
		x.AnswerWith(nil)
		began := id.InstantOf(w.now())
		w.later(61 * time.Minute) // the end of the pause, without a sweep
		w.eventually(name+": asked again", func() bool { return w.cosignedAt(red, x) > began })
		w.eventually("idle", w.idle)
	}
}

// The age of a ledger that no witness is asked about any more does not count.
func TestAgeOfQuorum(t *testing.T) {
	w := newWorld(t)
	x := w.witness("x.example")
	x.SetClock(w.now)
	w.append(red)
	w.append(blue)
	w.start(x.PolicyLine("x") + "quorum x\n")
	w.eventually("cosigned", func() bool { return w.by(red, x) == 1 && w.by(blue, x) == 1 && w.idle() })
	x.AnswerWith(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusForbidden) })
	w.pass(5 * time.Hour)
	if age := w.age(); age < 5*time.Hour || age > 5*time.Hour+5*time.Minute {
		t.Errorf("the oldest quorum is of %s ago, want 5h", age)
	}
	w.eventually("refused", w.ended)
	for _, tenant := range []id.Tenant{red, blue} {
		if err := w.Ledgers.Freeze(t.Context(), tenant, "a test"); err != nil {
			t.Fatal(err)
		}
		if level := w.State(t, tenant).Fault().Level; level != log.Frozen {
			t.Fatalf("got %v", level)
		}
	}
	w.pass(time.Hour)
	if age := w.age(); age != 0 {
		t.Errorf("frozen ledgers: the oldest quorum is of %s ago", age)
	}
}

// Ledgers that were cosigned together are asked about at different times in the second half of an hour.
func TestRefreshesSpread(t *testing.T) {
	w := &Witnesses{Options: Options{}.withDefaults()}
	signer := testSigner(t, "x.example")
	now := id.Instant(testTime)
	policy := newCounter(t).policy()
	policy.Witnesses[0].Key = signer.Key()
	f := &activePolicy{policy: policy}
	f.addTarget(&target{Witness: policy.Witnesses[0]}, func(string) *breaker { return nil })
	c := &cosignedCheckpoint{note: tlog.Note{Signatures: []tlog.Signature{signer.Cosign("text\n", now)}}}
	p := &ledgerRecord{newest: c, hints: map[string]*hint{signer.Key().Identity(): {Last: cosigned, At: now}}}
	const n = 6000
	var minutes [60]int
	for range n {
		after := w.refreshTime(p, f).Time().Sub(now.Time())
		if after < 30*time.Minute || after > time.Hour {
			t.Fatalf("asked again after %s", after)
		}
		minutes[min(int(after/time.Minute), 59)]++
	}
	for m, count := range minutes[30:] {
		if count > 2*n/30 {
			t.Errorf("minute %d: %d of %d ledgers", 30+m, count, n)
		}
	}
}

// A newer cosignature replaces an older one of its key, and one from the future; an older one does not.
func TestNewerCosignatureReplaces(t *testing.T) {
	x, y := testSigner(t, "x.example"), testSigner(t, "y.example")
	const text = "log.example/o/red\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
	note := tlog.Note{Text: text, Signatures: []tlog.Signature{
		x.Cosign(text, testTime), y.Cosign(text, testTime+7_200_000)}}
	c := &cosignedCheckpoint{note: note}
	for name, tc := range map[string]struct {
		line tlog.Signature
		left int
	}{
		"newer":                    {x.Cosign(text, testTime+1000), 1},
		"older":                    {x.Cosign(text, testTime-1000), 2},
		"the same":                 {x.Cosign(text, testTime), 2},
		"in place of a future one": {y.Cosign(text, testTime+1000), 1},
		"another witness":          {testSigner(t, "z.example").Cosign(text, testTime+1000), 2},
	} {
		if left := c.withoutOlder(tc.line, testTime+1000); len(left.Signatures) != tc.left {
			t.Errorf("%s: %d lines are left, want %d", name, len(left.Signatures), tc.left)
		}
	}
	if len(note.Signatures) != 2 || note.Signatures[0].Name != "x.example" {
		t.Error("the stored note was changed")
	}
}

// A witness whose clock is ahead is named in the log. Its cosignature is replaced by one whose time has come.
func TestWitnessAheadIsNamed(t *testing.T) {
	w := newWorld(t)
	x := w.witness("x.example")
	x.SetClock(func() time.Time { return w.now().Add(time.Hour) })
	var logged lockedBuffer
	w.append(red)
	w.start(x.PolicyLine("x")+"quorum x\n", func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&logged, nil)) })
	w.eventually("cosigned", func() bool { return w.by(red, x) == 1 && w.idle() })
	if text := logged.String(); !strings.Contains(text, "a witness cosigns with a time in the future") || !strings.Contains(text, "witness=x.example") {
		t.Errorf("got %s", text)
	}
	x.SetClock(w.now)
	first := w.cosignedAt(red, x)
	w.pass(0)
	if age := w.age(); age != 0 {
		t.Errorf("the cosignature from the future counts: it is of %s ago", age)
	}
	w.pass(31 * time.Minute) // the cosignature is still half an hour ahead
	w.pass(30 * time.Minute)
	w.eventually("cosigned again", func() bool { return w.cosignedAt(red, x) != first })
}

// lockedBuffer is a buffer for a logger that several goroutines use.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
