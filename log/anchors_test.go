package log_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/storage/storagetest"
)

func (w *world) journal() string { return filepath.Join(w.anchors, "anchors.journal") }

// refuses checks that the ledger takes no events, with this code, and is still read.
func (w *world) refuses(tenant id.Tenant, code string) {
	w.t.Helper()
	_, err := w.append(tenant, "refused")
	if !fault.Is(err, fault.Unavailable) || fault.Of(err).Code != code {
		w.t.Errorf("append: got %v, want unavailable with code %s", err, code)
	}
	if s := w.state(tenant); len(s.Checkpoint()) == 0 || s.Fault().Level == log.Healthy {
		w.t.Errorf("state: fault %+v", s.Fault())
	}
}

func TestOlderCopyIsFrozenForEver(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	w.mustAppend(red, "a", "b")
	w.mustAppend(blue, "a")
	backup := model.Reopen()
	w.mustAppend(red, "c")
	w.reopen(backup)
	w.refuses(red, "frozen")
	w.mustAppend(blue, "b") // its anchor is met: one ledger's fault is not another's
	w.reopen(backup)
	w.refuses(red, "frozen")
}

func TestForkOfTheSameSizeIsFrozen(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	w.mustAppend(red, "a")
	fork := &world{t: t, store: model.Reopen(), keyring: w.keyring, anchors: t.TempDir(), agent: w.agent, fatal: w.fatal, Time: w.Time.Copy()}
	fork.open(log.Options{})
	if err := fork.ledgers.Adopt(t.Context(), red, w.state(red).Checkpoint()); err != nil {
		t.Fatal(err)
	}
	w.mustAppend(red, "shown")
	fork.mustAppend(red, "other", "history")
	fork.ledgers.Close()
	w.reopen(fork.store)
	w.refuses(red, "frozen")
}

func TestNoAnchorIsReadOnlyUntilAdopted(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	w.mustAppend(red, "a", "b")
	old := bytes.Clone(w.state(red).Checkpoint())
	w.mustAppend(red, "c")
	foreign := bytes.Clone(w.state(blue).Checkpoint())
	w.ledgers.Close()
	w.anchors = t.TempDir()
	w.open(log.Options{})
	w.refuses(red, "read_only")
	w.mustAppend(blue, "empty-ledgers-need-no-anchor")

	if err := w.ledgers.Adopt(t.Context(), red, foreign); err == nil {
		t.Error("another organization's checkpoint was adopted")
	}
	if err := w.ledgers.Adopt(t.Context(), red, bytes.Replace(old, []byte("\n2\n"), []byte("\n1\n"), 1)); err == nil {
		t.Error("a checkpoint that the log key did not sign was adopted")
	}
	w.refuses(red, "read_only")
	if err := w.ledgers.Adopt(t.Context(), red, old); err != nil {
		t.Fatal(err)
	}
	w.mustAppend(red, "d")
	w.reopen(model)
	w.mustAppend(red, "e")
	w.audit(nil)
}

func TestAdoptRefusesWhatTheLedgerDoesNotExtend(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	w.mustAppend(red, "a")
	backup := model.Reopen()
	w.mustAppend(red, "b")
	newer := bytes.Clone(w.state(red).Checkpoint())
	w.ledgers.Close()
	w.anchors, w.store = t.TempDir(), backup
	w.open(log.Options{})
	if err := w.ledgers.Adopt(t.Context(), red, newer); err == nil {
		t.Error("a checkpoint larger than the ledger was adopted")
	}
	w.refuses(red, "read_only")
}

func TestAnchorsWithoutData(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	w.mustAppend(red, "a")
	w.ledgers.Close()
	anchors, err := anchor.Open(w.anchors)
	if err != nil {
		t.Fatal(err)
	}
	defer anchors.Close()
	empty := storagetest.NewModel()
	if _, err := log.Open(t.Context(), log.Options{Store: empty, Keyring: w.keyring, Anchors: anchors}); err == nil {
		t.Error("ledgers were opened on an empty store beside anchors")
	}
	var findings []audit.Finding
	result, err := audit.Fsck(t.Context(), empty, w.keyring, anchors, func(f audit.Finding) { findings = append(findings, f) })
	if err != nil || result.Findings != 2 || len(findings) != 2 || findings[0].Origin != ledgertest.Genesis(red).Origin || findings[0].Place != "anchor" {
		t.Errorf("fsck: got %v, %v, %v; want both origins to be missed", result, findings, err)
	}
}

// An anchor that lags lies anywhere in the ledger, also inside a full tile.
func TestFsckMeetsAnAnchorThatLags(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	for i := range 100 {
		w.mustAppend(red, fmt.Sprint("shown-", i))
	}
	w.ledgers.Close()
	lags, err := os.ReadFile(w.journal())
	if err != nil {
		t.Fatal(err)
	}
	w.open(log.Options{})
	w.grow(red, 400)
	w.ledgers.Close()
	if err := os.WriteFile(w.journal(), lags, 0o600); err != nil {
		t.Fatal(err)
	}
	anchors, err := anchor.Open(w.anchors)
	if err != nil {
		t.Fatal(err)
	}
	defer anchors.Close()
	result, err := audit.Fsck(t.Context(), w.store, w.keyring, anchors, func(f audit.Finding) { t.Error(f) })
	if err != nil || result.Events != 500 || result.Findings != 0 {
		t.Errorf("fsck: got %+v, %v; want 500 events and no findings", result, err)
	}
}

func TestAnchorJournal(t *testing.T) {
	tests := []struct {
		name   string
		mutate func([]byte) []byte
		opens  bool
	}{
		{"whole", func(b []byte) []byte { return b }, true},
		{"last note cut off", func(b []byte) []byte { return b[:len(b)-7] }, true},
		{"cut off inside the last header", func(b []byte) []byte { return b[:bytes.LastIndex(b, []byte("anchor "))+9] }, true},
		{"flipped byte in the first note", func(b []byte) []byte { b[60] ^= 1; return b }, false},
		{"flipped byte in the first header", func(b []byte) []byte { b[2] ^= 1; return b }, false},
		{"foreign text in front", func(b []byte) []byte { return append([]byte("hello\n"), b...) }, false},
		{"first note removed but its header", func(b []byte) []byte { return append(b[:30:30], b[300:]...) }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, storagetest.NewModel())
			w.mustAppend(red, "a", "b", "c")
			w.ledgers.Close()
			b, err := os.ReadFile(w.journal())
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(w.journal(), tt.mutate(b), 0o600); err != nil {
				t.Fatal(err)
			}
			anchors, err := anchor.Open(w.anchors)
			if (err == nil) != tt.opens {
				t.Fatalf("open: got %v, want success: %v", err, tt.opens)
			}
			if err != nil {
				return
			}
			anchors.Close()
			w.open(log.Options{})
			w.mustAppend(red, "d")
		})
	}
}
