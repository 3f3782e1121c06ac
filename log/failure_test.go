package log_test

import (
	"errors"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// Each write fails before it is applied, after it is applied, and with an unknown outcome, at every position of a
// run. Every acknowledged event is there, nothing is there twice, and the ledgers continue.
func TestFailedAppends(t *testing.T) {
	failures := map[string]storagetest.Failure{
		"refused":                 storagetest.Refused,
		"unknown and not applied": storagetest.RequestLost,
		"unknown and yet applied": storagetest.AnswerLost,
	}
	for name, failure := range failures {
		for _, every := range []int{1, 3} {
			t.Run(name, func(t *testing.T) {
				model := storagetest.NewModel()
				w := newWorld(t, model)
				n := 0
				model.Fail(func(b storage.Batch) storagetest.Failure {
					if b.Tenant != red {
						return storagetest.NoFailure
					}
					if n++; n%every == 0 && n < 40 {
						return failure
					}
					return storagetest.NoFailure
				})
				acknowledged := w.burst(100, "e")
				model.Fail(nil)
				if got := len(acknowledged[blue]); got != 100 {
					t.Errorf("the other organization got %d acknowledged, want 100", got)
				}
				again := w.burst(100, "e") // unacknowledged events are committed now, the others are duplicates
				for name, r := range again[red] {
					if _, twice := acknowledged[red][name]; twice {
						t.Errorf("%s was created twice", name)
					}
					acknowledged[red][name] = r
				}
				if got := w.state(red).Size(); got < id.Index(len(acknowledged[red])) || got != 100 {
					t.Errorf("got size %d with %d acknowledged, want 100", got, len(acknowledged[red]))
				}
				w.audit(acknowledged)
			})
		}
	}
}

// A conflict means that another writer moved the head: the ledger is read again and the event is appended after
// theirs.
func TestConflictIsBuiltAnew(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	w.mustAppend(red, "first")
	other := &world{t: t, store: model, keyring: w.keyring, anchors: t.TempDir(), agent: w.agent, fatal: w.fatal, Time: w.Time.Copy()}
	other.open(log.Options{})
	if err := other.ledgers.Adopt(t.Context(), red, w.state(red).Checkpoint()); err != nil {
		t.Fatal(err)
	}
	other.mustAppend(red, "theirs")
	w.mustAppend(red, "ours", "ours-2")
	other.mustAppend(red, "theirs-2")
	w.reopen(model)
	if got := w.state(red).Size(); got != 5 {
		t.Errorf("got size %d, want 5", got)
	}
	w.audit(nil)
}

func TestBrokenStoreEndsTheProcess(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	w.mustAppend(red, "first")
	model.Fail(func(storage.Batch) storagetest.Failure { return storagetest.Broken })
	if _, err := w.append(red, "second"); err == nil {
		t.Error("an append to a broken store was acknowledged")
	}
	if err := <-w.fatal; !errors.Is(err, storage.ErrBroken) {
		t.Errorf("fatal: got %v", err)
	}
	w.reopen(model.Reopen())
	if got := w.state(red).Size(); got != 1 {
		t.Errorf("after the restart: got size %d, want 1", got)
	}
	w.audit(nil)
}

func TestCrashKeepsWhatWasAcknowledged(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	acknowledged := w.burst(300, "a")
	release := model.Hold()
	lost := make(chan error, 1)
	go func() { lost <- second(w.append(red, "never-durable")) }()
	crashed := model.Reopen()
	release()
	<-lost
	w.reopen(crashed)
	w.audit(acknowledged)
}

// If a store fails and returns without the latest events, like a standby that lagged, the running process notices it,
// however recently those events were shown.
func TestStoreThatCameBackOlderIsFrozen(t *testing.T) {
	model := storagetest.NewModel()
	older := &switched{Store: model}
	w := newWorld(t, older)
	w.mustAppend(red, "first")
	w.mustAppend(blue, "first")
	if err := w.ledgers.FlushAnchors(); err != nil {
		t.Fatal(err)
	}
	standby := model.Reopen()
	w.mustAppend(red, "second", "third")
	shown := w.checkpoint(red)
	older.Store = standby
	if _, err := w.append(red, "fourth"); err == nil {
		t.Error("an append on top of lost events was acknowledged")
	}
	if got := w.state(red).Fault().Level; got != log.Frozen {
		t.Errorf("the ledger that lost events: got level %q, want %q", got, log.Frozen)
	}
	if got := w.checkpoint(red); got != shown {
		t.Errorf("the frozen ledger shows %+v, want %+v", got, shown)
	}
	w.mustAppend(blue, "second")
}

// switched is a store that can be replaced by another one.
type switched struct{ log.Store }
