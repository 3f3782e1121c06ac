package log_test

import (
	"slices"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// lost fails one append of red's, in a given way.
func lost(model *storagetest.Model, failure storagetest.Failure) {
	once := false
	model.Fail(func(b storage.Batch) storagetest.Failure {
		if b.Tenant != red || once {
			return storagetest.NoFailure
		}
		once = true
		return failure
	})
}

// An event whose append is found to be applied after all is shown from then on: its
// state gets its anchor and those who follow the ledgers are told, as of any other.
func TestRepairedStateIsAnchoredAndTold(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	w.mustAppend(red, "one")
	w.mustAppend(blue, "one")
	if err := w.ledgers.FlushAnchors(); err != nil {
		t.Fatal(err)
	}
	older, moves := model.Reopen(), w.ledgers.Moves()
	lost(model, storagetest.AnswerLost)
	w.mustAppend(red, "two")
	<-moves.Ready()
	if got, want := taken(moves), []id.Tenant{red}; !slices.Equal(got, want) {
		t.Errorf("moved: got %v, want %v", got, want)
	}
	if got := w.checkpoint(red).Size; got != 2 {
		t.Fatalf("got a checkpoint of size %d, want 2", got)
	}
	w.reopen(older) // the end of the process writes what was not anchored yet
	if f := w.state(red).Fault(); f.Level != log.Frozen || w.checkpoint(red).Size != 2 {
		t.Errorf("a store without what was shown: got %+v and a checkpoint of size %d", f, w.checkpoint(red).Size)
	}
	if f := w.state(blue).Fault(); f.Level != log.Healthy {
		t.Errorf("the other organization: got %+v", f)
	}
}

// An append that was not applied after all is done again, and told once it is.
func TestRepairDoesAgainWhatWasNotApplied(t *testing.T) {
	for name, failure := range map[string]storagetest.Failure{"refused": storagetest.Refused, "request lost": storagetest.RequestLost} {
		t.Run(name, func(t *testing.T) {
			model := storagetest.NewModel()
			w := newWorld(t, model)
			w.mustAppend(red, "one")
			if err := w.ledgers.FlushAnchors(); err != nil {
				t.Fatal(err)
			}
			older, moves := model.Reopen(), w.ledgers.Moves()
			lost(model, failure)
			w.mustAppend(red, "two")
			if got, want := taken(moves), []id.Tenant{red}; !slices.Equal(got, want) {
				t.Errorf("moved: got %v, want %v", got, want)
			}
			w.audit(nil)
			w.reopen(older)
			if f := w.state(red).Fault(); f.Level != log.Frozen {
				t.Errorf("a store without what was shown: got %+v", f)
			}
		})
	}
}

// What a repair finds to be frozen is neither anchored as it is nor told as news.
func TestRepairedFrozenStateIsNotAnchored(t *testing.T) {
	model := storagetest.NewModel()
	behind := &switched{Store: model}
	w := newWorld(t, behind)
	w.mustAppend(red, "one")
	standby := model.Reopen()
	w.mustAppend(red, "two")
	shown := w.checkpoint(red)
	moves := w.ledgers.Moves()
	behind.Store = standby
	if _, err := w.append(red, "three"); err == nil {
		t.Fatal("an append on top of lost events was acknowledged")
	}
	if got := taken(moves); len(got) > 0 {
		t.Errorf("moved: got %v", got)
	}
	w.reopen(model)
	if f := w.state(red).Fault(); f.Level != log.Healthy || w.checkpoint(red) != shown {
		t.Errorf("the store that holds what was shown: got %+v, %+v", f, w.checkpoint(red))
	}
}

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
