package log_test

import (
	"slices"
	"testing"

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
