package witness

import (
	"net/http"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// change appends one event and returns its error.
func (w *world) change(tenant id.Tenant, name string) error {
	_, err := w.orgs.Change(w.t.Context(), tenant, "acc", org.Patch{Name: &name})
	return err
}

// restore continues with an older store without anchors, whose heads an operator has adopted. It runs no rounds: all
// requests are those before first events.
func (w *world) restore(older *storagetest.Model) {
	w.t.Helper()
	w.Service = w.Adopted(w.t, older, red, blue)
	w.Store = older
	o := w.witnesses.Options
	o.Store, o.Ledgers, o.Organizations, o.Metrics = w.Engine, w.Ledgers, w.organizations(""), nil
	w.witnesses = New(o)
	w.Witness = w.witnesses
}

// The store is from before the newest events and has no anchors: a witness that has cosigned those events freezes the
// ledger before it accepts another event.
func TestWitnessIsAskedBeforeTheFirstEvent(t *testing.T) {
	w := newWorld(t)
	x := w.witness("x.example")
	w.start(x.PolicyLine("x") + "quorum x\n")
	w.append(red)
	w.append(blue)
	cosigned := func(tenant id.Tenant) bool {
		return x.LatestCheckpoint(id.Origin(w.key(tenant).Name())).Size == w.State(t, tenant).Size()
	}
	w.eventually("both are cosigned", func() bool { return w.by(red, x) == 1 && w.by(blue, x) == 1 })
	older := w.Store.Reopen()
	w.append(red)
	w.append(red)
	w.eventually("the newer tree is cosigned", func() bool { return cosigned(red) })
	w.stop()

	w.restore(older)
	if err := w.change(red, "on a fork"); fault.Of(err).Code != "frozen" {
		t.Errorf("got %v, want the ledger to be frozen", err)
	}
	if got := w.State(t, red).Size(); !w.frozen(red) || got != 1 {
		t.Errorf("got a ledger of size %d, frozen: %v; want it as it was, and frozen", got, w.frozen(red))
	}
	if err := w.change(blue, "goes on"); err != nil {
		t.Errorf("the other organization: %v", err)
	}
	calls, _ := x.CountCalls()
	if err := w.change(blue, "goes on again"); err != nil {
		t.Errorf("the other organization: %v", err)
	}
	if again, _ := x.CountCalls(); again != calls {
		t.Errorf("%d calls for a second event", again-calls)
	}
}

// A witness that does not answer delays the first event for a bounded time, and no other one.
func TestFirstEventDoesNotWaitForASilentWitness(t *testing.T) {
	w := newWorld(t)
	x := w.witness("x.example")
	w.start(x.PolicyLine("x") + "quorum x\n")
	w.append(red)
	w.append(blue)
	w.eventually("cosigned", func() bool { return w.by(red, x) == 1 && w.by(blue, x) == 1 })
	w.stop()
	silent := make(chan struct{})
	x.AnswerWith(func(http.ResponseWriter, *http.Request) { <-silent })
	defer close(silent)
	w.restore(w.Store.Reopen())
	began := time.Now()
	for _, tenant := range []id.Tenant{red, blue, red} {
		if err := w.change(tenant, "waits"); err != nil {
			t.Errorf("tenant %d: %v", tenant, err)
		}
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("three events took %v", took)
	}
}
