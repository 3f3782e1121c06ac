package provision_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// While anchors cannot be written, nobody can create an organization, and nothing remains claimed: the same call
// succeeds once they can be written.
func TestMakeWithoutAnchors(t *testing.T) {
	w := newWorld(t)
	w.works(w.make(another("blue")))
	journal := filepath.Join(w.Anchors(), "names.journal")
	if err := errors.Join(os.Remove(journal), os.MkdirAll(filepath.Join(journal, "in the way"), 0o700)); err != nil {
		t.Fatal(err)
	}
	same := request("red")
	same.Organization, same.AdminEmail = id.NewOrganization(), "new@example.com"
	for range 2 {
		made, err := w.CreateOrganization(t.Context(), same)
		if f := fault.Of(err); f.Kind != fault.Unavailable || f.Message != "The anchors can't be written" {
			t.Fatalf("got %+v, %v, want unavailable", made, err)
		}
	}
	if err := os.RemoveAll(journal); err != nil {
		t.Fatal(err)
	}
	var made *provision.Result
	for deadline := time.Now().Add(2 * time.Minute); made == nil; time.Sleep(10 * time.Millisecond) { // the journal is rewritten
		var err error
		if made, err = w.CreateOrganization(t.Context(), same); err != nil && (!fault.Is(err, fault.Unavailable) || time.Now().After(deadline)) {
			t.Fatal(err)
		}
	}
	w.works(made)
}

// If the anchors fail when the ledger is already stored, the organization's secrets are still returned: the
// organization is complete and takes events once the anchors can be written.
func TestAnchorsFailAfterTheLedger(t *testing.T) {
	w := newWorld(t)
	broken := false
	w.Store.Fail(func(storage.Batch) storagetest.Failure {
		if !broken {
			broken = os.Remove(filepath.Join(w.Anchors(), "anchors.journal")) == nil
		}
		return storagetest.NoFailure
	})
	made := w.make(request("red"))
	if !broken || made.State == nil || made.State.Size() != 0 || made.State.VerifierKey().Name() != string(made.State.Identity().Origin) {
		t.Fatalf("got %+v, broken %v", made, broken)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, err := w.Service.Ledgers.State(t.Context(), made.Tenant)
		if err == nil {
			break
		}
		if !fault.Is(err, fault.Unavailable) || time.Now().After(deadline) {
			t.Fatalf("got %v, want unavailable for a while", err)
		}
	}
	w.works(made)
	w.works(w.make(another("blue")))
}
