package rekey_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/rekey"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

// opens counts the organizations whose value a keyring opens.
func (w *world) opens(r *seal.Keyring) (n int) {
	w.t.Helper()
	for _, tenant := range []id.Tenant{ledgertest.Red, ledgertest.Blue} {
		record, err := w.Store.Get(w.t.Context(), tenant, kind, "")
		if err != nil {
			w.t.Fatal(err)
		}
		if _, err := r.Open(contextOf(w.State(w.t, tenant).Identity().KeyOwner()), record.Value); err == nil {
			n++
		}
	}
	return n
}

// change does what a process does that is started with both keys.
func (w *world) change(store *enginetest.Mortal) error {
	if err := rekey.BeginRekeying(w.t.Context(), store, w.both); err != nil {
		return err
	}
	_, err := w.resealer(store).Run(w.t.Context())
	return err
}

// A process that dies before or after any write leaves a store that does not start with a keyring that opens only a
// part of it. A process with both keys completes the change. (The first ledger refuses a keyring that opens nothing.)
func TestDeathsWhileResealing(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 0; ; n++ {
			w := newWorld(t)
			store := &enginetest.Mortal{Engine: w.Store}
			store.DieAt(n, after)
			err := w.change(store)
			what := fmt.Sprintf("died at write %d, after it %v", n, after)
			for name, ring := range map[string]*seal.Keyring{"old": w.old, "new": w.new, "both": w.both} {
				refused := rekey.CheckMasterKeys(t.Context(), w.Store, ring)
				if refused == nil && w.opens(ring) == 1 {
					t.Errorf("%s: a start with %s is not refused and opens half of it", what, name)
				}
				if name == "both" && refused != nil {
					t.Errorf("%s: a start with both keys: %v", what, refused)
				}
			}
			if err := w.change(&enginetest.Mortal{Engine: w.Store}); err != nil {
				t.Errorf("%s: once more: %v", what, err)
			}
			if err := rekey.CheckMasterKeys(t.Context(), w.Store, w.new); err != nil || w.opens(w.new) != 2 {
				t.Errorf("%s: at the end: %v", what, err)
			}
			if !store.Dead() {
				if err != nil {
					t.Errorf("alive: %v", err)
				}
				if n != 4 { // the note, two values, the end of the note
					t.Errorf("got %d writes, want 4", n)
				}
				break
			}
		}
	}
}

// If a value cannot be resealed, the note stays, so the older key is still required.
func TestCheckNamesWhatIsMissing(t *testing.T) {
	w := newWorld(t)
	if err := rekey.BeginRekeying(t.Context(), w.Store, w.new); err != nil {
		t.Fatal(err)
	}
	if err := rekey.CheckMasterKeys(t.Context(), w.Store, w.old); err != nil {
		t.Errorf("one key has nothing to note: %v", err)
	}
	w.put(ledgertest.Red, []byte("damaged"))
	if err := w.change(&enginetest.Mortal{Engine: w.Store}); err == nil {
		t.Fatal("a damaged value was resealed")
	}
	missing := w.old.Fingerprints()[0]
	if err := rekey.CheckMasterKeys(t.Context(), w.Store, w.new); err == nil || !strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), "--older-master-key-file") {
		t.Errorf("got %v, want the fingerprint %s of what is missing", err, missing)
	}
}
