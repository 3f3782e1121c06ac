package witness

import (
	"testing"
	"time"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/tlog"
)

// mldsaSigner returns an ML-DSA-44 key.
func mldsaSigner(t testing.TB, name string) tlog.WitnessSigner {
	t.Helper()
	seed := edkey.NewPrivate().Seed()
	s, err := tlog.NewMLDSAWitnessSigner(name, seed[:])
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// line returns the policy line for a key at the address of a witness.
func line(name string, key tlog.WitnessKey, url string) string {
	return "witness " + name + " " + key.String() + " " + url + "\n"
}

// size returns the size of a ledger's newest checkpoint with a quorum, or 0 if there is none.
func (w *world) size(tenant id.Tenant) id.Index {
	w.t.Helper()
	s, err := w.witnesses.Status(w.t.Context(), tenant)
	if err != nil {
		w.t.Fatal(err)
	}
	if s.Quorum == nil {
		return 0
	}
	return s.Quorum.Size
}

// A witness with an Ed25519 and an ML-DSA-44 key gets one request per round for a log, and both lines of its answer
// count: in rounds, and before first events.
func TestTwoKeysBehindOneAddress(t *testing.T) {
	w := newWorld(t)
	x, second := w.witness("x.example"), mldsaSigner(t, "x.example")
	x.AddSigner(second)
	policy := line("old", x.Signer.Key(), x.URL) + line("new", second.Key(), x.URL+"/") + "group both all old new\nquorum both\n"
	w.start(policy)
	for i := range 3 {
		for _, tenant := range []id.Tenant{red, blue} {
			w.append(tenant)
			w.eventually("both keys", func() bool { return w.size(tenant) == w.State(t, tenant).Size() })
		}
		if calls, _ := x.CountCalls(); calls != 2*(i+1) {
			t.Fatalf("got %d calls for %d rounds", calls, 2*(i+1))
		}
	}
	if got := w.asks(cosigned); got != 12 {
		t.Errorf("%d cosignatures of two keys in six rounds", got)
	}
	w.stop()
	before, _ := x.CountCalls()
	w.restore(w.Store.Reopen())
	for _, tenant := range []id.Tenant{red, blue} {
		if err := w.change(tenant, "first"); err != nil {
			t.Fatal(err)
		}
	}
	if calls, _ := x.CountCalls(); calls != before+2 {
		t.Errorf("got %d calls before two first events", calls-before)
	}
}

// If the answer has the line of only one of two keys, that line counts, and the other is requested again when its pause
// ends.
func TestOneKeyOfTwoSigns(t *testing.T) {
	w := newWorld(t)
	x, second := w.witness("x.example"), mldsaSigner(t, "x.example")
	w.start(line("old", x.Signer.Key(), x.URL) + line("new", second.Key(), x.URL) + "group one any old new\nquorum one\n")
	w.append(red)
	w.eventually("one key is enough", func() bool { return w.size(red) == 1 })
	w.eventually("nothing left to do", w.idle)
	s, err := w.witnesses.Status(t.Context(), red)
	if err != nil || s.Witnesses[0].NotBefore != 0 || s.Witnesses[1].NotBefore == 0 || len(s.Newest.Cosignatures) != 1 {
		t.Errorf("got %+v, %v", s, err)
	}
	x.AddSigner(second)
	w.later(2 * time.Minute)
	w.eventually("both keys", func() bool {
		s, err := w.witnesses.Status(t.Context(), red)
		return err == nil && len(s.Newest.Cosignatures) == 2
	})
	if calls, _ := x.CountCalls(); calls != 2 {
		t.Errorf("got %d calls", calls)
	}
}

// An organization names another key of the service's witness at the same address: there is one request per round for
// its log, and the other organization's policy is unaffected.
func TestOwnKeyAtTheServicesAddress(t *testing.T) {
	w := newWorld(t)
	x, second := w.witness("x.example"), mldsaSigner(t, "x.example")
	x.AddSigner(second)
	w.start(x.PolicyLine("x") + "quorum x\n")
	w.name(red, org.Witnessing{Policy: line("new", second.Key(), x.URL) + "quorum new\n"})
	w.eventually("red", func() bool { return w.size(red) == 1 })
	w.append(blue)
	w.eventually("blue", func() bool { return w.size(blue) == 1 })
	if calls, _ := x.CountCalls(); calls != 2 {
		t.Errorf("got %d calls", calls)
	}
	for tenant, want := range map[id.Tenant]int{red: 2, blue: 1} {
		s, err := w.witnesses.Status(t.Context(), tenant)
		if err != nil || len(s.Newest.Cosignatures) != want {
			t.Errorf("%d: got %+v, %v", tenant, s.Newest, err)
		}
	}
}
