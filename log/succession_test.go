package log_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/storage/storagetest"
	"github.com/agentledger/agentledger/tlog"
)

// succeed makes the successor of a ledger and returns its handle.
func (w *world) succeed(tenant id.Tenant) id.Tenant {
	w.t.Helper()
	successor, err := w.ledgers.Succeed(w.t.Context(), w.state(tenant))
	if err != nil {
		w.t.Fatal(err)
	}
	return successor.Identity().Tenant
}

// inHeir appends an event of an organization to the ledger of another handle.
func (w *world) inHeir(of, tenant id.Tenant, name string) {
	w.t.Helper()
	if _, err := w.ledgers.Append(w.t.Context(), tenant, w.single(of, name, 0)); err != nil {
		w.t.Fatal(err)
	}
}

// freeze marks a ledger for what somebody outside knows.
func (w *world) freeze(tenant id.Tenant) {
	w.t.Helper()
	if err := w.ledgers.Freeze(w.t.Context(), tenant, "somebody knows more"); err != nil {
		w.t.Fatal(err)
	}
}

func TestSucceed(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	w.mustAppend(red, "one", "two")
	w.mustAppend(blue, "one")
	if _, err := w.ledgers.Succeed(t.Context(), w.state(red)); !fault.Is(err, fault.Conflict) {
		t.Fatalf("of a ledger that is well: got %v", err)
	}
	w.freeze(red)
	old := w.state(red)
	successor := w.succeed(red)
	if again := w.succeed(red); again != successor {
		t.Errorf("again: got %d, want %d", again, successor)
	}
	s := w.state(successor)
	now := id.InstantOf(w.Clock())
	if got, want := s.Identity().Origin, old.Identity().Origin+"/2"; got != want || s.Identity().Predecessor != red || s.Identity().Organization != old.Identity().Organization {
		t.Errorf("got %+v", s.Identity())
	}
	if s.VerifierKey() == old.VerifierKey() || s.ConfigVersion() <= old.ConfigVersion() || s.Size() != 0 || s.Used(now) != 2 || s.Last() == old.Last() {
		t.Errorf("got key %s, config version %d, size %d, %d used", s.VerifierKey(), s.ConfigVersion(), s.Size(), s.Used(now))
	}
	if next, err := w.ledgers.Successor(t.Context(), w.state(red)); next != nil || err != nil {
		t.Errorf("before its first event: got %v, %v", next, err)
	}
	w.inHeir(red, successor, "three")
	for range 2 {
		next, err := w.ledgers.Successor(t.Context(), w.state(red))
		if err != nil || next == nil || next.Identity().Tenant != successor || next.Used(now) != 3 {
			t.Fatalf("got %+v, %v", next, err)
		}
		if before, err := w.ledgers.Predecessor(t.Context(), next); err != nil || before.Identity().Tenant != red {
			t.Errorf("got %+v, %v", before, err)
		}
		if before, err := w.ledgers.Predecessor(t.Context(), w.state(red)); before != nil || err != nil {
			t.Errorf("before the first: got %v, %v", before, err)
		}
		if next, err := w.ledgers.Successor(t.Context(), w.state(blue)); next != nil || err != nil {
			t.Errorf("the other organization: got %v, %v", next, err)
		}
		w.refuses(red, "frozen")
		w.reopen(model)
	}
	w.mustAppend(blue, "two")
}

// A retry of what a predecessor holds is known in the ledger that goes on, and what
// was used there can't be used for something else.
func TestReplaysOfALine(t *testing.T) {
	for _, rolledBack := range []bool{false, true} {
		model := storagetest.NewModel()
		w := newWorld(t, model)
		w.mustAppend(red, "one", "two")
		older := model.Reopen()
		if rolledBack {
			w.mustAppend(red, "lost")
			w.reopen(older)
		} else {
			w.freeze(red)
		}
		if got := w.state(red).Detached(); got != rolledBack {
			t.Fatalf("detached: got %v", got)
		}
		second := w.succeed(red)
		w.inHeir(red, second, "three")
		w.freeze(second)
		third := w.succeed(second)
		w.inHeir(red, third, "four")
		digests := map[string]id.Hash{}
		for _, name := range []string{"one", "two", "three", "four", "five", "lost"} {
			digests[name] = w.envelope(red, name).Digest
		}
		for name, known := range map[string]bool{"one": true, "two": true, "three": true, "four": true, "five": false, "lost": false} {
			if got, err := w.replayed(third, id.Event(name), "", digests[name]); got != known || err != nil {
				t.Errorf("%s: got %v, %v, want %v", name, got, err, known)
			}
			if got, err := w.replayed(third, "new", "idem-"+name, digests[name]); got != known || err != nil {
				t.Errorf("the key of %s: got %v, %v, want %v", name, got, err, known)
			}
			if !known {
				continue
			}
			if _, err := w.replayed(third, id.Event(name), "", digests["five"]); !fault.Is(err, fault.Invalid) {
				t.Errorf("%s with another event: got %v", name, err)
			}
			if _, err := w.replayed(third, "five", "idem-"+name, digests["five"]); !fault.Is(err, fault.Invalid) {
				t.Errorf("the key of %s with another event: got %v", name, err)
			}
			if got, err := w.replayed(blue, id.Event(name), "idem-"+name, digests[name]); got || err != nil {
				t.Errorf("%s in the other organization: got %v, %v", name, got, err)
			}
		}
	}
}

// A ledger whose head can't be read is succeeded too: by one whose config version no
// event has been judged by.
func TestSucceedADamagedLedger(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	w.mustAppend(red, "one", "two", "three")
	shown, note := w.checkpoint(red), bytes.Clone(w.state(red).Checkpoint())
	w.reopen(headless{model, 2})
	w.refuses(red, "frozen")
	successor := w.succeed(red)
	w.inHeir(red, successor, "four")
	if got := w.state(successor).ConfigVersion(); got <= 1<<31 {
		t.Errorf("got config version %d", got)
	}
	if s := w.state(red); s.Shown() != shown || !bytes.Equal(s.Checkpoint(), note) {
		t.Errorf("the old log shows %+v", s.Shown())
	}
}

// Fsck counts a succeeded ledger apart. A successor that does not begin by saying what
// it succeeds is at fault.
func TestFsckOfALine(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	w.mustAppend(red, "one")
	w.freeze(red)
	if got := w.fsck(model); len(got) != 1 || got[0].Place != "ledger" {
		t.Errorf("frozen: got %v", got)
	}
	successor := w.succeed(red)
	if got := w.fsck(model); len(got) != 1 || got[0].Place != "ledger" {
		t.Errorf("on its way: got %v", got)
	}
	w.inHeir(red, successor, "no-succession")
	w.ledgers.Close()
	var findings []audit.Finding
	result, err := audit.Fsck(t.Context(), model, w.keyring, nil, func(f audit.Finding) { findings = append(findings, f) })
	if err != nil || result.Succeeded != 1 || result.Ledgers != 3 || len(findings) != 1 {
		t.Fatalf("got %+v, %v, %v", result, findings, err)
	}
	if f := findings[0]; f.Place != "record 0" || f.Origin != ledgertest.Origin(red)+"/2" || !strings.Contains(f.Problem, "succession") {
		t.Errorf("got %v", f)
	}
}

// The last checkpoint of a frozen ledger becomes its anchor: from then on the ledger shows
// at least that, also after a restart. Whatever is not its last one is refused and
// changes nothing, of it or of the neighbour.
func TestAnchorLast(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	w.mustAppend(red, "one")
	w.mustAppend(blue, "one")
	early, foreign := w.state(red).Checkpoint(), w.state(blue).Checkpoint()
	w.mustAppend(red, "two")
	older := model.Reopen()
	w.mustAppend(red, "three", "four")
	newest, want, neighbour := w.state(red).Checkpoint(), w.checkpoint(red), w.checkpoint(blue)
	refused := func(name string, note []byte, what func(error) bool) {
		t.Helper()
		before := w.checkpoint(red)
		if err := w.ledgers.AnchorLast(t.Context(), w.state(red), note); !what(err) || w.checkpoint(red) != before {
			t.Errorf("%s: got %v", name, err)
		}
	}
	conflict := func(err error) bool { return fault.Is(err, fault.Conflict) }
	refused("of a ledger that is well", newest, conflict)
	w.anchors = t.TempDir() // lost with the store
	w.reopen(older)
	w.freeze(red)
	if got := w.checkpoint(red); got.Size != 2 {
		t.Fatalf("got size %d", got.Size)
	}
	refused("an older one", early, conflict)
	refused("the neighbour's", foreign, func(err error) bool { return errors.Is(err, tlog.ErrSignature) })
	refused("none", []byte("x"), func(err error) bool { return errors.Is(err, tlog.ErrMalformed) })
	if err := w.ledgers.AnchorLast(t.Context(), w.state(red), newest); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := w.state(red)
		if w.checkpoint(red) != want || !s.Detached() || s.Fault().Level != log.Frozen || fault.Of(s.Provable()).Code != "frozen" {
			t.Errorf("got %+v, detached %v, %v", w.checkpoint(red), s.Detached(), s.Fault())
		}
		if got := w.checkpoint(blue); got != neighbour {
			t.Errorf("the neighbour: got %+v, want %+v", got, neighbour)
		}
		w.reopen(older)
	}
	refused("less than before", early, conflict)
}
