package log_test

import (
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// A node that loses a ledger with an append whose outcome it does not know looks the append up. As long as the append
// may still take effect, nobody is told that nothing was done.
func TestLostWithAnAppendOut(t *testing.T) {
	for name, tt := range map[string]struct {
		failure storagetest.Failure
		stored  bool
	}{
		"it may come later": {storagetest.RequestLost, false},
		"it has landed":     {storagetest.AnswerLost, true},
	} {
		model := storagetest.NewModel()
		one, two := newNodes(t, model)
		one.mustAppend(red, "a")
		one.mustAppend(blue, "a")
		model.Fail(func(b storage.Batch) storagetest.Failure {
			if b.Tenant != red || len(b.Events) == 0 {
				return storagetest.NoFailure
			}
			one.owns[red].Store(false)
			return tt.failure
		})
		receipt, err := one.append(red, "b")
		if tt.stored != (err == nil) || !tt.stored && !fault.Is(err, fault.OutcomeUnknown) {
			t.Errorf("%s: got %+v, %v", name, receipt, err)
		}
		model.Fail(func(storage.Batch) storagetest.Failure { return storagetest.NoFailure })
		if err := one.ledgers.FlushAnchors(); err != nil {
			t.Error(err)
		}
		one.spread(two)
		two.owns[red].Store(true)
		if got := two.state(red).Size(); (got == 2) != tt.stored {
			t.Errorf("%s: the next owner has %d events", name, got)
		}
		one.mustAppend(blue, "b")
	}
}
