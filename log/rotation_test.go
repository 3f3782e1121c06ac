package log_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
	"github.com/agentledger/agentledger/tlog"
)

// Keys are rotated while both organizations send: no event is refused, and every
// checkpoint that anybody saw meanwhile carries one line of each key that signs its
// size, and no other.
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
	for i, key := range rotated { // step 2i brings key i+1, step 2i+1 ends key i
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

// checkLines holds a checkpoint against the keys of its size.
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

// The stored keys change between preparing and landing, as when they are sealed anew
// under another master key: the step is prepared again on what is stored then, and
// loses nothing of it.
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
