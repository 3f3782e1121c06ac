package log_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage/storagetest"
)

func always() bool { return true }

// With AnchorFirst whatever is acknowledged has its anchor by then: a process that dies
// at that moment, and a store that comes back older, leave no fork.
func TestAnchorBeforeTheAnswer(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	w.ledgers.Close()
	w.open(log.Options{AnchorFirst: always})
	w.mustAppend(red, "a")
	w.mustAppend(blue, "a")
	older := model.Reopen()
	for i := range 20 {
		w.mustAppend(red, fmt.Sprint("lost-", i))
		if !strings.Contains(w.read(), string(w.state(red).Checkpoint())) {
			t.Fatalf("event %d is acknowledged and has no anchor", i)
		}
	}
	shown := w.checkpoint(red)
	after := w.on(t, []byte(w.read())) // the first process never wrote at its end
	after.store = older
	after.open(log.Options{AnchorFirst: always})
	after.refuses(red, "frozen")
	if got := after.checkpoint(red); got != shown {
		t.Errorf("got checkpoint %+v, want %+v", got, shown)
	}
	after.mustAppend(blue, "b")
}

// Many callers of both organizations at once, and a store that loses answers.
func TestAnchorBeforeManyAnswers(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	w.ledgers.Close()
	w.open(log.Options{AnchorFirst: always})
	lost(model, storagetest.AnswerLost)
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			tenant := red
			if i%2 == 1 {
				tenant = blue
			}
			if _, err := w.append(tenant, fmt.Sprint("e-", i)); err != nil {
				t.Error(err)
			}
			checkpoint := string(w.state(tenant).Checkpoint())
			if !strings.Contains(w.read(), checkpoint) {
				t.Errorf("shown, and not anchored: %s", checkpoint)
			}
		})
	}
	group.Wait()
	w.audit(nil)
}

// Without anchors nothing is acknowledged and nothing newer is shown; with them it goes
// on, and what was stored all the time is there once.
func TestAnchorsThatCannotBeWrittenBeforeTheAnswer(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	w.ledgers.Close()
	w.open(log.Options{AnchorFirst: always})
	w.mustAppend(red, "a")
	w.mustAppend(blue, "a")
	if err := errors.Join(os.RemoveAll(w.anchors), os.WriteFile(w.anchors, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, err := w.append(red, "b")
		if !fault.Is(err, fault.OutcomeUnknown) && !fault.Is(err, fault.Unavailable) {
			t.Fatalf("got %v, want that nobody knows", err)
		}
	}
	if s, err := w.ledgers.State(t.Context(), red); err == nil && s.Size() > 1 {
		t.Errorf("a head of size %d is shown without an anchor", s.Size())
	}
	if got := w.state(blue).Size(); got != 1 {
		t.Errorf("the other organization: got size %d, want 1", got)
	}
	if err := os.Remove(w.anchors); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an event that is known or new", func() bool {
		_, err := w.append(red, "b")
		return err == nil || errors.Is(err, log.ErrDuplicate)
	})
	w.mustAppend(red, "c")
	w.mustAppend(blue, "b")
	if got := w.state(red).Size(); got != 3 {
		t.Errorf("got size %d, want 3", got)
	}
	w.audit(nil)
}
