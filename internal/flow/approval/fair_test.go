package approval_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// However many endings must be recorded for one organization, because of time or a new policy, at most one turn (16)
// of it precedes the only approval of the other organization.
func TestSweepTakesTurns(t *testing.T) {
	const many = 50
	for name, end := range map[string]func(w *world){
		"time":   func(w *world) { w.Pass(601 * time.Second) },
		"policy": func(w *world) { w.activate(red, "newer", 2); w.activate(blue, "newer", 2); w.notePolicies() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for i := range many {
				q := w.question(red)
				q.Trace = id.Trace(fmt.Sprint("trc_", i))
				w.ask(red, q)
			}
			w.Pass(time.Second)
			other := w.ask(blue, w.question(blue))
			end(w)
			var order []id.Tenant
			w.Store.Fail(func(b storage.Batch) (none storagetest.Failure) {
				order = append(order, b.Tenant)
				return none
			})
			if err := w.approvals.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.Store.Fail(nil)
			before := 0
			for before < len(order) && order[before] == red {
				before++
			}
			if len(order) != many+1 || before > 16 {
				t.Errorf("%d statements, %d of them before the other's", len(order), before)
			}
			if got := w.status(blue, other); got == approval.Pending {
				t.Errorf("the other's is %s", got)
			}
		})
	}
}

func (w *world) notePolicies() {
	w.approvals.PolicyChanged(red)
	w.approvals.PolicyChanged(blue)
}
