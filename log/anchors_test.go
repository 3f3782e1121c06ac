package log_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
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

// refuses checks that the ledger rejects events with this code and can still be read.
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
	w.mustAppend(blue, "b") // its anchor is satisfied: a fault concerns only one ledger
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

// An anchor that lags can be anywhere in the ledger, even inside a full tile.
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

// A note that a crash truncated is removed. Any other damage keeps the notes before and after it: a ledger accepts
// events if it has a note after the damage, or if the damaged note is known to belong to another ledger.
func TestAnchorJournal(t *testing.T) {
	first := func(b []byte) int { return bytes.Index(b[1:], []byte("anchor ")) + 1 } // end of the first note
	last := func(b []byte) int { return bytes.LastIndex(b, []byte("anchor ")) }
	flip := func(at func([]byte) int) func([]byte) []byte {
		return func(b []byte) []byte { b[at(b)] ^= 1; return b }
	}
	digit := func(at func([]byte) int) func([]byte) []byte { // of the note's length
		return func(b []byte) []byte { b[at(b)+7] ^= 4; return b }
	}
	tests := []struct {
		name   string
		mutate func([]byte) []byte
		red    bool // accepts events; its note is the last one
		blue   bool // accepts events; its only note is an earlier one
	}{
		{"whole", func(b []byte) []byte { return b }, true, true},
		{"last note cut off", func(b []byte) []byte { return b[:len(b)-7] }, true, true},
		{"cut off inside the last header", func(b []byte) []byte { return b[:last(b)+9] }, true, true},
		{"zeros in the place of the last note", func(b []byte) []byte { return append(b[:last(b)], make([]byte, 300)...) }, true, true},
		{"flipped bit in the first note", flip(func(b []byte) int { return first(b) - 9 }), true, true},
		{"flipped bit in the first header", flip(func([]byte) int { return 2 }), true, true},
		{"flipped bit in the first length", digit(func([]byte) int { return 0 }), true, true},
		{"flipped bit in the signature of the last note", flip(func(b []byte) int { return len(b) - 9 }), false, true},
		{"flipped bit in the size of the last note", flip(func(b []byte) int { return last(b) + bytes.Index(b[last(b):], []byte("\n3\n")) + 1 }), false, true},
		{"flipped bit in the checksum of the last note", flip(func(b []byte) int { return last(b) + 15 }), false, true},
		{"flipped bit in the last header", flip(func(b []byte) int { return last(b) + 2 }), false, true},
		{"flipped bit in the last length", digit(last), false, true},
		{"flipped bit in the origin of the last note", flip(func(b []byte) int { return last(b) + 40 }), false, false},
		{"flipped line end in the last note", flip(func(b []byte) int { return last(b) + bytes.IndexByte(b[last(b):], '\n') }), false, false},
		{"foreign text in front", func(b []byte) []byte { return append([]byte("hello\n"), b...) }, true, true},
		{"foreign text at the end", func(b []byte) []byte { return append(b, "hello\n"...) }, false, false},
		{"first note removed but its header", func(b []byte) []byte { return append(b[:30:30], b[first(b):]...) }, true, true},
		{"all but the first and the last note overwritten", func(b []byte) []byte {
			for i := first(b); i < last(b); i++ {
				b[i] = 'x'
			}
			return b
		}, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, storagetest.NewModel())
			if _, err := w.ledgers.State(t.Context(), blue); err != nil {
				t.Fatal(err)
			}
			w.mustAppend(blue, "a")
			w.reopen(w.store)
			for _, name := range []string{"a", "b", "c"} {
				w.mustAppend(red, name)
				w.reopen(w.store)
			}
			w.ledgers.Close()
			b, err := os.ReadFile(w.journal())
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(w.journal(), tt.mutate(b), 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 { // a restart does not end the doubt
				w.open(log.Options{})
				for tenant, takes := range map[id.Tenant]bool{red: tt.red, blue: tt.blue} {
					if s := w.state(tenant); (s.Fault().Level == log.Healthy) != takes || s.Fault().Level == log.Frozen {
						t.Errorf("tenant %d: fault %+v", tenant, s.Fault())
					}
					if !takes {
						w.refuses(tenant, "read_only")
					}
				}
				w.ledgers.Close()
				anchors, err := anchor.Open(w.anchors) // nor does a compaction
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(anchors.Compact(t.Context(), nil), anchors.Close()); err != nil {
					t.Fatal(err)
				}
			}
			w.open(log.Options{})
			for _, tenant := range []id.Tenant{red, blue} {
				if w.state(tenant).Fault().Level != log.Healthy {
					if err := w.ledgers.Adopt(t.Context(), tenant, w.state(tenant).Checkpoint()); err != nil {
						t.Fatal(err)
					}
				}
				w.mustAppend(tenant, "d")
			}
			w.reopen(w.store)
			w.mustAppend(red, "e")
			w.mustAppend(blue, "e")
		})
	}
}

// A store that was rolled back to before the damaged note is not accepted as current, even if the ledger is empty
// there.
func TestRollbackBehindDamage(t *testing.T) {
	for name, events := range map[string][]string{"empty": nil, "with events": {"a"}} {
		t.Run(name, func(t *testing.T) {
			model := storagetest.NewModel()
			w := newWorld(t, model)
			w.mustAppend(blue, "a")
			if events != nil {
				w.mustAppend(red, events...)
			}
			w.ledgers.Close()
			backup := model.Reopen()
			w.open(log.Options{})
			w.mustAppend(red, "shown")
			w.ledgers.Close()
			b, err := os.ReadFile(w.journal())
			if err != nil {
				t.Fatal(err)
			}
			b[len(b)-9] ^= 1
			if err := os.WriteFile(w.journal(), b, 0o600); err != nil {
				t.Fatal(err)
			}
			w.store = backup
			w.open(log.Options{})
			if s := w.state(red); s.Fault().Level != log.ReadOnly {
				t.Errorf("fault %+v", s.Fault())
			}
			w.mustAppend(blue, "b")
			if err := w.ledgers.Adopt(t.Context(), red, w.state(red).Checkpoint()); err != nil {
				t.Fatal(err)
			}
			w.mustAppend(red, "other") // the operator was wrong, which is the operator's fault
		})
	}
}

// A write that the file system accepted may never reach the disk, so it is not shown: the next start may not find it,
// and the shown state would be a fork.
func TestAnchoredShowsNothingBeyondTheAnchor(t *testing.T) {
	for name, early := range map[string]int{"nothing anchored": 0, "some": 3, "a tile and more": 300} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, storagetest.NewModel())
			w.burst(early, "early")
			w.mustAppend(blue, "last")
			w.reopen(w.store)
			want := map[id.Tenant]any{red: w.checkpoint(red), blue: w.checkpoint(blue)}
			behind := copyAnchors(t, w.anchors)
			w.mustAppend(red, "late-1", "late-2")
			if err := w.ledgers.Close(); err != nil {
				t.Fatal(err)
			}
			w.anchors = behind

			w.open(log.Options{ReadOnly: true, Anchored: true})
			for tenant, c := range want {
				if got := w.checkpoint(tenant); got != c {
					t.Errorf("tenant %d: got %+v, want %+v", tenant, got, c)
				}
			}
			s := w.state(red)
			if int(s.Size()) != early {
				t.Fatalf("got size %d, want %d", s.Size(), early)
			}
			if _, err := w.ledgers.Find(t.Context(), s, "late-1"); !fault.Is(err, fault.NotFound) {
				t.Errorf("an event beyond the anchor: got %v, want NotFound", err)
			}
			for at := range s.Size() {
				if _, root, _, err := w.ledgers.Inclusion(t.Context(), s, at, s.Size()); err != nil || root != s.Root() {
					t.Fatalf("inclusion of %d: got root %v, %v; want %v", at, root, err, s.Root())
				}
			}
			if err := s.Trusted(); err != nil {
				t.Errorf("trusted: got %v", err)
			}
			if err := w.ledgers.Close(); err != nil {
				t.Fatal(err)
			}

			w.open(log.Options{}) // the append was applied after all
			if got := w.state(red); int(got.Size()) != early+2 || got.Trusted() != nil {
				t.Errorf("afterwards: got size %d, %v; want %d", got.Size(), got.Trusted(), early+2)
			}
		})
	}
}

// copyAnchors returns a folder with the anchors as they are on disk.
func copyAnchors(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(filepath.Join(to, "anchors"), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(to, "anchors")
}

func always() bool { return true }

// With AnchorFirst, every acknowledged event already has its anchor: a process that dies at that moment and a store
// that is rolled back leave no fork.
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
	after := w.on(t, []byte(w.read())) // the first process did not write when it ended
	after.store = older
	after.open(log.Options{AnchorFirst: always})
	after.refuses(red, "frozen")
	if got := after.checkpoint(red); got != shown {
		t.Errorf("got checkpoint %+v, want %+v", got, shown)
	}
	after.mustAppend(blue, "b")
}

// Many concurrent callers of both organizations, and a store that loses answers.
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

// Without anchors, nothing is acknowledged and no later state is shown. With them the ledger continues, and events
// stored in the meantime are there once.
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
