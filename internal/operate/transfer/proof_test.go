package transfer_test

import (
	"context"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/operate/transfer"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/storage"
)

// The addresses of an imported organization are not proved here: its people sign in to it with their passwords, and an
// organization that this service creates for the same address takes the account over.
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
	there.imports(export, "") // imported again
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

	// An unproved account with another password here does not have to belong to the person of the export.
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

// confirming is a mail system that shows the latest token for a new address.
type confirming struct{ token string }

func (*confirming) PasswordMail(context.Context, account.Account) ([]storage.Change, error) {
	return nil, nil
}

func (*confirming) AddressMail(context.Context, account.Account) ([]storage.Change, error) {
	return nil, nil
}

func (*confirming) FactorMail(context.Context, account.Account, account.LoginKind) ([]storage.Change, error) {
	return nil, nil
}

func (m *confirming) ConfirmMail(_ context.Context, c account.EmailChange) ([]storage.Change, error) {
	m.token = c.Token
	return []storage.Change{{Kind: "test_mail", Key: string(c.Account), Value: []byte("{}"), If: storage.AnyVersion}}, nil
}

// An organization whose unproved member lost the address to an account that proved it moves like any other.
func TestReleasedAddressMoves(t *testing.T) {
	from := netip.MustParseAddr("192.0.2.1")
	here := newHouse(t, pebble(t), newKeyring(t))
	here.start()
	red := here.found("red", "ann@example.com", 1)
	blue := here.found("blue", "eve@example.com", 2)
	sent, err := here.members().Invite(t.Context(), blue.Tenant, &account.Session{Account: blue.Membership.Account},
		"bob@example.com", account.Member)
	if err != nil {
		t.Fatal(err)
	}
	squatter, _, err := here.accounts.EnsureInvited(t.Context(), "bob@example.com", password,
		account.ClaimByInvitation(blue.Tenant, false), account.Visit{})
	if err != nil {
		t.Fatal(err)
	}
	token, err := member.ParseToken(sent.Token)
	if err == nil {
		err = here.members().Accept(t.Context(), blue.Tenant, squatter, token)
	}
	if err != nil {
		t.Fatal(err)
	}
	mail := &confirming{}
	accounts := account.New(account.Options{Records: here.engine, Clock: here.clock, Mail: mail,
		Hashing: account.Hashing{MemoryKiB: 64, Passes: 1}})
	who, err := accounts.Authenticate(t.Context(), "ann@example.com", password, from)
	if err != nil {
		t.Fatal(err)
	}
	_, session, err := accounts.OpenFrom(t.Context(), who, red.Tenant, account.Visit{})
	if err == nil {
		err = accounts.BeginEmailChange(t.Context(), session, "bob@example.com", from)
	}
	if err == nil {
		_, err = accounts.FinishEmailChange(t.Context(), session, mail.token, "", from, account.Visit{})
	}
	if err != nil {
		t.Fatal(err)
	}
	here.stop()
	here.fsck()
	export := filepath.Join(t.TempDir(), "export")
	here.export(export, "")

	there := newHouse(t, model(t), here.keyring)
	there.imports(export, "")
	there.start()
	if found, err := there.accounts.Find(t.Context(), "bob@example.com"); err != nil || found.ID != who.ID {
		t.Errorf("the address belongs to %s, %v", found.ID, err)
	}
	if all, err := there.accounts.Members(t.Context(), blue.Tenant); err != nil || len(all) != 2 {
		t.Errorf("blue has %v, %v", all, err)
	}
	there.stop()
	there.fsck()
}
