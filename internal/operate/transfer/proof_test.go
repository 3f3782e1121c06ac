package transfer_test

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/operate/transfer"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// The addresses of an organization that comes from elsewhere prove nothing here: its people sign in to it with their
// passwords, and what this service founds for the same address takes the account over.
func TestImportedAddressesAreUnproved(t *testing.T) {
	from := netip.MustParseAddr("192.0.2.1")
	here := newHouse(t, pebble(t), newKeyring(t))
	here.start()
	red := here.found("red", "ann@example.com", 1)
	here.found("blue", "ann@example.com", 2)
	here.stop()
	export := filepath.Join(t.TempDir(), "export")
	here.export(export, "")

	there := newHouse(t, pebble(t), here.keyring)
	there.imports(export, "")
	there.imports(export, "") // once more
	there.start()
	ann := red.Membership.Account
	proofIs := func(step string, want account.Proof) {
		t.Helper()
		if got, err := there.accounts.Proof(t.Context(), ann); err != nil || got != want {
			t.Errorf("%s: got %s, %v", step, got, err)
		}
	}
	proofIs("imported", account.Unproved)
	if _, err := there.accounts.Authenticate(t.Context(), "ann@example.com", password, from); err != nil {
		t.Errorf("the password of before: %v", err)
	}
	if places, err := there.accounts.Memberships(t.Context(), ann); err != nil || len(places) != 2 {
		t.Errorf("got %v, %v", places, err)
	}
	who, known, err := there.accounts.Owner(t.Context(), "ann@example.com", "")
	if err != nil || known || who.ID != ann {
		t.Fatalf("got %v, known %v, %v", who.ID, known, err)
	}
	proofIs("founded", account.ProvedByOperator)
	if _, err := there.accounts.Authenticate(t.Context(), "ann@example.com", password, from); err == nil {
		t.Error("the password of before lets somebody in")
	}
	there.stop()

	// An unproved account with another password here need not be of the person of the export.
	third := newHouse(t, pebble(t), here.keyring)
	third.imports(export, "red")
	third.start()
	session := &account.Session{Account: ann, Email: "ann@example.com"}
	if _, err := third.accounts.ChangePassword(t.Context(), session, password, "another password here", from, account.Visit{}); err != nil {
		t.Fatal(err)
	}
	third.stop()
	_, err = third.tryImport(export, "blue")
	if err == nil || !strings.Contains(err.Error(), "another password") || !strings.Contains(err.Error(), transfer.ErrRefused.Error()) {
		t.Errorf("another holder: got %v", err)
	}
}
