package erasure_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

// archive reports that objects of some organizations contain erased envelopes.
type archive struct {
	behind map[id.Tenant]bool
	err    error
}

func (a *archive) ErasuresWaiting(_ context.Context, t id.Tenant) (bool, error) {
	return a != nil && a.behind[t], a.failure()
}

func (a *archive) failure() error {
	if a == nil {
		return nil
	}
	return a.err
}

// An erasure is complete only when the objects of the archive are rewritten.
func TestErasureWaitsForArchive(t *testing.T) {
	w := newWorld(t, ledgertest.New(t))
	w.archive = &archive{behind: map[id.Tenant]bool{red: true}}
	w.open()
	w.send(red, some()...)
	w.send(blue, some()...)
	mine, theirs := w.begin(red, erasure.Wanted{Agent: "agt_a"}), w.begin(blue, erasure.Wanted{Agent: "agt_a"})
	for range 3 {
		w.drain()
		got, other := w.find(red, mine.ID), w.find(blue, theirs.ID)
		wantText(t, "objects are behind", got.State, erasure.Running)
		wantText(t, "erased all the same", got.Erased, other.Erased)
		wantText(t, "the other organization", other.State, erasure.Done)
		w.Pass(2 * time.Second)
	}
	w.archive.behind[red], w.archive.err = false, errors.New("away")
	if _, err := w.erasures.Sweep(t.Context()); err == nil {
		t.Error("the archive can't be looked at: got no error")
	}
	wantText(t, "the archive can't be looked at", w.find(red, mine.ID).State, erasure.Running)
	w.archive.err = nil
	w.Pass(time.Minute)
	w.drain()
	wantText(t, "objects are rewritten", w.find(red, mine.ID).State, erasure.Done)
}
