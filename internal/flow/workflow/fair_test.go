package workflow_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// However many runs of one organization are silent, at most one turn (16) of it precedes the only run of the other
// organization.
func TestSweepTakesTurns(t *testing.T) {
	w := newWorld(t)
	const many = 50
	for i := range many {
		w.start(red, beginning(fmt.Sprint("run ", i)))
	}
	w.Pass(time.Second)
	w.start(blue, beginning("run"))
	w.Pass(time.Hour + time.Second)
	var order []id.Tenant
	w.Store.Fail(func(b storage.Batch) (none storagetest.Failure) {
		order = append(order, b.Tenant)
		return none
	})
	w.sweep()
	w.Store.Fail(nil)
	before := 0
	for before < len(order) && order[before] == red {
		before++
	}
	if len(order) != many+1 || before > 16 {
		t.Errorf("%d runs ended, %d of them before the other's", len(order), before)
	}
	if all := w.dues(); len(all) != 0 {
		t.Errorf("due: got %v", all)
	}
}
