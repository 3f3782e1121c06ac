package witness

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
	"github.com/agentledger/agentledger/trust"
)

// shownTo returns whose logs a witness has cosigned.
func shownTo(x *witnesstest.Witness) (got struct{ red, blue bool }) {
	got.red = x.LatestCheckpoint(ledgertest.Origin(red)).Size > 0
	got.blue = x.LatestCheckpoint(ledgertest.Origin(blue)).Size > 0
	return got
}

// Each organization has a witness of its own in addition to the service's: no log is shown to the other organization's
// witness, and no cosignature appears under the other's log.
func TestTwoOrganizationsApart(t *testing.T) {
	w := newWorld(t)
	house, reds, blues := w.witness("house.example"), w.witness("red.example"), w.witness("blue.example")
	w.start(house.PolicyLine("house") + "quorum house\n")
	w.name(red, org.Witnessing{Policy: reds.PolicyLine("house") + "quorum house\n"}) // the same name as the other's witness, with another key
	w.name(blue, org.Witnessing{Policy: blues.PolicyLine("own") + "witness house " + house.Signer.Key().String() + "\ngroup both all own house\nquorum both\n"})
	w.eventually("red", func() bool { return w.by(red, house, reds) == 2 })
	w.eventually("blue", func() bool { return w.by(blue, house, blues) == 2 })
	if got := shownTo(reds); !got.red || got.blue {
		t.Errorf("red's witness was shown %v", got)
	}
	if got := shownTo(blues); got.red || !got.blue {
		t.Errorf("blue's witness was shown %v", got)
	}

	for _, row := range []struct {
		tenant id.Tenant
		want   string
	}{
		{red, "witness house " + reds.Signer.Key().String() + " " + reds.URL + "\nwitness service.house " + house.Signer.Key().String() + " " + house.URL + "\nquorum house\n"},
		{blue, "witness own " + blues.Signer.Key().String() + " " + blues.URL + "\nwitness house " + house.Signer.Key().String() + " " + house.URL + "\ngroup both all own house\nquorum both\n"},
	} {
		p, err := w.witnesses.Policy(t.Context(), w.State(t, row.tenant))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Validate(); err != nil || p.Text() != row.want {
			t.Errorf("got %s, %v, want %s", p.Text(), err, row.want)
		}
	}

	// Without red's own witness, red has no quorum; blue is unaffected.
	reds.AnswerWith(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusServiceUnavailable) })
	before, err := w.witnesses.Cosigned(t.Context(), w.State(t, red))
	if err != nil {
		t.Fatal(err)
	}
	w.append(red)
	w.append(blue)
	w.eventually("blue's next", func() bool { return w.by(blue, house, blues) == 2 })
	w.eventually("the service's on red", func() bool { return w.by(red, house, reds) == 1 })
	if after, err := w.witnesses.Cosigned(t.Context(), w.State(t, red)); err != nil || string(after) != string(before) {
		t.Errorf("got %s, %v, want %s", after, err, before)
	}

	// Back to the service's policy: its witness's cosignature is enough.
	w.name(red, org.Witnessing{})
	w.eventually("the service's quorum", func() bool {
		note, err := w.witnesses.Cosigned(t.Context(), w.State(t, red))
		return err == nil && strings.Contains(string(note), "\n"+fmt.Sprint(w.State(t, red).Size())+"\n")
	})
	if p, err := w.witnesses.Policy(t.Context(), w.State(t, red)); err != nil || p.Text() != house.PolicyLine("house")+"quorum house\n" {
		t.Errorf("got %v, %v", p, err)
	}
}

// An organization's own witness freezes only that organization's ledger.
func TestOwnWitnessContradicts(t *testing.T) {
	w := newWorld(t)
	own := w.witness("own.example")
	w.append(red)
	w.append(blue)
	w.start("")
	own.SetLatest(w.foreign(100))
	w.name(red, org.Witnessing{Policy: own.PolicyLine("own") + "quorum none\n"})
	w.eventually("frozen", func() bool { return w.frozen(red) })
	w.append(blue)
	if w.frozen(blue) {
		t.Error("blue is frozen too")
	}
	calls, _ := own.CountCalls()
	w.pass(24 * time.Hour)
	w.eventually("nothing left to do", w.idle)
	if after, _ := own.CountCalls(); after != calls {
		t.Errorf("a frozen ledger was shown %d times more", after-calls)
	}
}

// With alarms only, nothing is frozen, and the alarm is not repeated all the time.
func TestContradictionCanBeAnAlarmAlone(t *testing.T) {
	w := newWorld(t)
	x := w.witness("x.example")
	w.append(red)
	x.SetLatest(w.foreign(100))
	w.start(x.PolicyLine("x")+"quorum x\n", func(o *Options) { o.AlarmOnly = true })
	w.eventually("an alarm", func() bool { return w.contradictions() == 1 })
	for range 3 {
		w.append(red)
	}
	w.eventually("nothing left to do", w.idle)
	if w.frozen(red) || w.contradictions() != 1 {
		t.Errorf("frozen: %v, %d alarms", w.frozen(red), w.contradictions())
	}
	w.pass(2 * time.Hour)
	w.eventually("another alarm", func() bool { return w.contradictions() == 2 })
}

// A refusal pauses the witness for the log, longer each time and across restarts. Then it is asked again, even if the
// ledger does not move.
func TestRefusalIsForAWhile(t *testing.T) {
	w := newWorld(t)
	x := witnesstest.New(t, "x.example") // knows no log
	policy := x.PolicyLine("x") + "quorum x\n"
	w.append(red)
	w.start(policy)
	w.eventually("refused", func() bool { return w.asks(refused) == 1 })
	for range 3 {
		w.append(red)
		w.eventually("nothing left to do", w.idle)
	}
	w.start(policy)
	w.pass(0)
	w.eventually("nothing left to do", w.idle)
	if calls, _ := x.CountCalls(); calls != 1 {
		t.Fatalf("got %d calls", calls)
	}
	w.pass(80 * time.Second)
	w.eventually("refused again", func() bool { return w.asks(refused) == 1 })
	w.pass(80 * time.Second)
	w.eventually("nothing left to do", w.idle)
	if calls, _ := x.CountCalls(); calls != 2 {
		t.Errorf("got %d calls: the second refusal is for longer", calls)
	}
	x.AddLog(w.key(red))
	w.pass(2 * time.Hour)
	w.eventually("cosigned", func() bool { return w.by(red, x) == 1 })
	s, err := w.witnesses.Status(t.Context(), red)
	if err != nil || len(s.Witnesses) != 1 || s.Witnesses[0].NotBefore != 0 || s.Witnesses[0].Acknowledged != w.State(t, red).Size() || s.Quorum == nil || len(s.Quorum.Cosignatures) != 1 {
		t.Errorf("got %+v, %v", s, err)
	}
}

// A failing witness is paused for all logs; one of them tries first.
func TestUnwellWitnessIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	x, y := w.witness("x.example"), w.witness("y.example")
	x.AnswerWith(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTooManyRequests) })
	w.start(x.PolicyLine("x") + y.PolicyLine("y") + "group g any x y\nquorum g\n")
	w.append(red)
	w.eventually("x is not well", func() bool { return w.asks(unwell) == 1 })
	for range 3 {
		w.append(red)
		w.append(blue)
		w.eventually("y", func() bool { return w.by(red, x, y) == 1 && w.by(blue, x, y) == 1 })
	}
	if calls, _ := x.CountCalls(); calls != 1 {
		t.Errorf("got %d calls", calls)
	}
	x.AnswerWith(nil)
	w.pass(time.Minute)
	w.eventually("x is well", func() bool { return w.by(red, x, y) == 2 && w.by(blue, x, y) == 2 })
}

// What another node stored meanwhile is not overwritten.
func TestTwoNodesKeepEachOthersCosignatures(t *testing.T) {
	w := newWorld(t)
	x, y := w.witness("x.example"), w.witness("y.example")
	w.append(red)
	w.start(x.PolicyLine("x") + "quorum x\n")
	w.eventually("x", func() bool { return w.by(red, x) == 1 })
	first := w.witnesses
	w.start(y.PolicyLine("y") + x.PolicyLine("x") + "group both all x y\nquorum both\n")
	w.eventually("both", func() bool { return w.by(red, x, y) == 2 })
	w.eventually("both at the other", func() bool {
		note, err := first.Checkpoint(t.Context(), w.State(t, red))
		return err == nil && w.vouch(red, note, x, y) == 2
	})
}

func TestStoredRecordThatCannotBeReadIsMadeAnew(t *testing.T) {
	w := newWorld(t)
	x := w.witness("x.example")
	policy := x.PolicyLine("x") + "quorum x\n"
	w.append(red)
	w.start(policy)
	w.eventually("cosigned", func() bool { return w.by(red, x) == 1 })
	for _, value := range []string{"", "{", `{"quorum":"x"}`, `{"newest":7}`, `{"hints":{"a":null}}`} {
		w.stop()
		w.damage(red, value)
		w.start(policy)
		w.eventually("cosigned again after "+value, func() bool { return w.by(red, x) == 1 })
	}
}

func TestCosignedForNobody(t *testing.T) {
	w := newWorld(t)
	w.start("")
	w.append(red)
	s := w.State(t, red)
	note, err := w.witnesses.Cosigned(t.Context(), s)
	if err != nil || string(note) != string(s.Checkpoint()) {
		t.Errorf("got %s, %v", note, err)
	}
	p, err := w.witnesses.Policy(t.Context(), s)
	if err != nil || p.Quorum != trust.None || len(p.Witnesses) > 0 {
		t.Errorf("got %+v, %v", p, err)
	}
	w.eventually("nothing to do", w.idle)
	if _, err := w.witnesses.Status(t.Context(), 77); !fault.Is(err, fault.NotFound) {
		t.Errorf("nobody: got %v", err)
	}
}
