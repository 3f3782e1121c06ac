package log_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
	"github.com/agentledger/agentledger/tlog"
)

// keyChange is a method of the ledgers that changes log keys.
type keyChange func(context.Context, *log.State) (*log.KeyChange, error)

// rekey commits an event with a change of the log keys and returns the key, as the published state has it.
func (w *world) rekey(tenant id.Tenant, name string, change keyChange) (key log.LogKey, err error) {
	e := w.envelope(tenant, name)
	var made *log.KeyChange
	_, err = w.ledgers.Append(w.t.Context(), tenant, func(ctx context.Context, s *log.State) (log.Submission, error) {
		if made, err = change(ctx, s); err != nil {
			return log.Submission{}, err
		}
		return log.Submission{Drafts: []log.Draft{w.draft(s, e, 0)}, Keys: made}, nil
	})
	if err != nil {
		return key, err
	}
	for _, key = range w.state(tenant).LogKeys() {
		if key.Verifier == made.Verifier {
			return key, nil
		}
	}
	return key, errors.New("the key is not the log's")
}

// signedBy returns which of the keys have signed the shown checkpoint.
func signedBy(t *testing.T, s *log.State, keys ...tlog.VerifierKey) (signed []bool) {
	t.Helper()
	for _, key := range keys {
		_, err := tlog.OpenCheckpoint(s.Checkpoint(), key)
		if err != nil && !errors.Is(err, tlog.ErrSignature) {
			t.Fatal(err)
		}
		signed = append(signed, err == nil)
	}
	return signed
}

func TestLogKeyRotation(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	w.mustAppend(red, "a", "b")
	w.mustAppend(blue, "a")
	first, before, of := w.state(red).VerifierKey(), w.state(red).Checkpoint(), w.state(blue).VerifierKey()
	if _, err := w.rekey(red, "x", w.ledgers.RetireLogKey); !fault.Is(err, fault.Conflict) {
		t.Errorf("retired the only key: %v", err)
	}

	added, err := w.rekey(red, "rotated", w.ledgers.RotateLogKey)
	if err != nil || added.From != 3 || added.To != log.NoEnd {
		t.Fatalf("got %+v, %v", added, err)
	}
	second := added.Verifier
	check := func(what string, primary tlog.VerifierKey, want ...bool) {
		t.Helper()
		s := w.state(red)
		if got := signedBy(t, s, first, second); got[0] != want[0] || got[1] != want[1] {
			t.Errorf("%s: signed by %v, want %v", what, got, want)
		}
		if s.VerifierKey() != primary {
			t.Errorf("%s: the key that is told is %s", what, s.VerifierKey())
		}
		again := s.Checkpoint()
		w.reopen(w.store)
		if !bytes.Equal(w.state(red).Checkpoint(), again) {
			t.Errorf("%s: another checkpoint after a restart", what)
		}
	}
	check("at the rotation", first, true, true)
	w.mustAppend(red, "c")
	check("in the overlap", first, true, true)
	if _, err := w.rekey(red, "x", w.ledgers.RotateLogKey); !fault.Is(err, fault.Conflict) {
		t.Errorf("rotated while two sign: %v", err)
	}
	overlap := w.state(red).Checkpoint()

	retired, err := w.rekey(red, "retired", w.ledgers.RetireLogKey)
	if err != nil || retired.Verifier != first || retired.To != 5 {
		t.Fatalf("got %+v, %v", retired, err)
	}
	check("when it ends", second, false, true)
	w.mustAppend(red, "d")
	check("after it", second, false, true)
	if got := w.state(red).LogKeys(); len(got) != 2 || got[0] != (log.LogKey{Verifier: first, From: 0, To: 5}) || got[1] != (log.LogKey{Verifier: second, From: 3, To: log.NoEnd}) {
		t.Errorf("got %+v", got)
	}
	if got := w.state(blue).VerifierKey(); got != of || len(w.state(blue).LogKeys()) != 1 {
		t.Errorf("the other organization has another key: %s", got)
	}
	if found := w.fsck(w.store); len(found) > 0 {
		t.Errorf("fsck: %v", found)
	}
	for name, note := range map[string][]byte{"of before": before, "of the overlap": overlap, "of now": w.state(red).Checkpoint()} {
		if err := w.ledgers.Adopt(t.Context(), red, note); err != nil {
			t.Errorf("adopt a checkpoint %s: %v", name, err)
		}
	}

	again, err := w.rekey(red, "rotated-again", w.ledgers.RotateLogKey)
	if err != nil || again.From != 7 {
		t.Fatalf("got %+v, %v", again, err)
	}
	if got := signedBy(t, w.state(red), first, second, again.Verifier); got[0] || !got[1] || !got[2] {
		t.Errorf("the third: signed by %v", got)
	}
}

// A retired key signs no tree of a size after its retirement, and is not accepted for one.
func TestRetiredLogKeyIsNotAdopted(t *testing.T) {
	older := storagetest.NewModel()
	w := newWorld(t, older)
	w.mustAppend(red, "a")
	if _, err := w.rekey(red, "rotated", w.ledgers.RotateLogKey); err != nil {
		t.Fatal(err)
	}
	inOverlap := w.state(red).Checkpoint()
	if _, err := w.rekey(red, "retired", w.ledgers.RetireLogKey); err != nil {
		t.Fatal(err)
	}
	note, err := tlog.ParseNote(inOverlap)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range note.Signatures { // either line alone is of its key's sizes
		one := tlog.Note{Text: note.Text, Signatures: []tlog.Signature{line}}
		if err := w.ledgers.Adopt(t.Context(), red, one.Bytes()); err != nil {
			t.Errorf("line %d: %v", i, err)
		}
	}
	foreign := w.state(blue).Checkpoint()
	if err := w.ledgers.Adopt(t.Context(), red, foreign); err == nil {
		t.Error("another log's checkpoint is adopted")
	}
}

// A rotation that was not committed changes nothing, and generates a new key when it is retried.
func TestLogKeyRotationFails(t *testing.T) {
	for name, failure := range map[string]storagetest.Failure{
		"refused": storagetest.Refused, "request lost": storagetest.RequestLost, "answer lost": storagetest.AnswerLost,
	} {
		t.Run(name, func(t *testing.T) {
			store := storagetest.NewModel()
			w := newWorld(t, store)
			w.mustAppend(red, "a")
			first, failed := w.state(red).VerifierKey(), 0
			store.Fail(func(storage.Batch) storagetest.Failure {
				if failed++; failed > 1 {
					return 0
				}
				return failure
			})
			_, err := w.rekey(red, "rotated", w.ledgers.RotateLogKey)
			store.Fail(nil)
			keys := w.state(red).LogKeys()
			if landed := w.state(red).Size() == 2; landed != (len(keys) == 2) {
				t.Errorf("size %d with %d keys, %v", w.state(red).Size(), len(keys), err)
			}
			note := w.state(red).Checkpoint()
			w.reopen(w.store)
			if !bytes.Equal(note, w.state(red).Checkpoint()) {
				t.Error("another checkpoint after a restart")
			}
			if _, err := tlog.OpenCheckpoint(note, first); err != nil {
				t.Error(err)
			}
		})
	}
}

// Keys are rotated while both organizations send: no event is rejected, and every checkpoint seen in the meantime has
// exactly one line of each key that signs its size.
func TestLogKeyRotationUnderLoad(t *testing.T) {
	const rotations = 4
	w := newWorld(t, storagetest.NewModel())
	of := w.state(blue).Checkpoint()
	stop := make(chan struct{})
	var senders, readers sync.WaitGroup
	for sender := range 8 {
		tenant := []id.Tenant{red, blue}[sender%2]
		senders.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := w.append(tenant, fmt.Sprintf("s%d-%d", sender, i)); err != nil {
					t.Errorf("event while keys are rotated: %v", err)
					return
				}
			}
		})
	}
	seen := map[id.Index][]byte{}
	readers.Go(func() {
		for {
			s, err := w.ledgers.State(t.Context(), red)
			if err != nil {
				t.Error(err)
				return
			}
			seen[s.Size()] = s.Checkpoint()
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	var rotated []log.LogKey
	for i := range rotations {
		for what, change := range []keyChange{w.ledgers.RotateLogKey, w.ledgers.RetireLogKey} {
			key, err := w.rekey(red, fmt.Sprintf("step-%d-%d", i, what), change)
			if err != nil {
				t.Fatalf("rotation %d, step %d: %v", i, what, err)
			}
			rotated = append(rotated, key)
			for n := range 10 {
				w.mustAppend(red, fmt.Sprintf("after-%d-%d-%d", i, what, n))
			}
		}
	}
	close(stop)
	senders.Wait()
	readers.Wait()

	keys := w.state(red).LogKeys()
	if len(keys) != rotations+1 || len(w.state(blue).LogKeys()) != 1 {
		t.Fatalf("got %d and %d keys", len(keys), len(w.state(blue).LogKeys()))
	}
	for i, key := range rotated { // step 2i adds key i+1, step 2i+1 ends key i
		at, err := w.ledgers.Find(t.Context(), w.state(red), id.Event(fmt.Sprintf("step-%d-%d", i/2, i%2)))
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 && keys[i/2+1].From != at+1 || i%2 == 1 && keys[i/2].To != at+1 {
			t.Errorf("step %d at %d: got %+v, which is %+v now", i, at, key, keys)
		}
	}
	for size, note := range seen {
		checkLines(t, size, note, keys)
	}
	if _, err := tlog.OpenCheckpoint(of, w.state(blue).VerifierKey()); err != nil {
		t.Errorf("the other organization: %v", err)
	}
	for _, f := range w.fsck(w.store) {
		t.Errorf("fsck: %v", f)
	}
	now := w.state(red).Checkpoint()
	w.reopen(w.store)
	if again := w.state(red).Checkpoint(); !slices.Equal(again, now) {
		t.Error("another checkpoint after a restart")
	}
	t.Logf("%d events, %d checkpoints seen", w.state(red).Size(), len(seen))
}

// checkLines compares the lines of a checkpoint with the keys for its size.
func checkLines(t *testing.T, size id.Index, note []byte, keys []log.LogKey) {
	t.Helper()
	lines := 0
	for _, k := range keys {
		if k.From > size || size >= k.To {
			continue
		}
		lines++
		if c, err := tlog.OpenCheckpoint(note, k.Verifier); err != nil || c.Size != size {
			t.Errorf("size %d, key of [%d, %d): got %+v, %v", size, k.From, k.To, c, err)
		}
	}
	if n, err := tlog.ParseNote(note); err != nil || len(n.Signatures) != lines {
		t.Errorf("size %d: got %d lines, %v, want %d", size, len(n.Signatures), err, lines)
	}
}

// The stored keys change between preparation and commit, for example when they are resealed under another master key:
// the change is prepared again on the stored value and loses nothing.
func TestLogKeyRotationBesideAnotherChange(t *testing.T) {
	store := storagetest.NewModel()
	w := newWorld(t, store)
	w.mustAppend(red, "a")
	const kind storage.Kind = "ledger" // the identity, with its sealed keys
	prepared := 0
	key, err := w.rekey(red, "rotated", func(ctx context.Context, s *log.State) (*log.KeyChange, error) {
		made, err := w.ledgers.RotateLogKey(ctx, s)
		if prepared++; err != nil || prepared > 2 {
			return made, err
		}
		is, err := store.Get(ctx, red, kind, "")
		if err != nil {
			return nil, err
		}
		resealed := bytes.Replace(is.Value, []byte("{"), []byte("{ "), prepared) // what is written is another value
		return made, store.Write(ctx, red, []storage.Change{{Kind: kind, Value: resealed, If: is.Version}})
	})
	if err != nil || prepared != 3 || key.From != 2 {
		t.Errorf("got %+v, %v, prepared %d times", key, err, prepared)
	}
	if keys := w.state(red).LogKeys(); len(keys) != 2 {
		t.Errorf("got %+v", keys)
	}
	checkLines(t, 2, w.state(red).Checkpoint(), w.state(red).LogKeys())
	w.reopen(w.store)
	checkLines(t, 2, w.state(red).Checkpoint(), w.state(red).LogKeys())
}
