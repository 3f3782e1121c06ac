package transfer_test

import (
	"path/filepath"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/storage"
)

func (h *house) members() *member.Members {
	return member.New(member.Options{Records: h.engine, Events: h.systemEvents, Accounts: h.accounts, Clock: h.clock,
		Quota: &quota.Quota{Records: h.engine, Clock: h.clock}})
}

// join makes the account of an address a member by an invitation.
func (h *house) join(t id.Tenant, email string, sent member.Sent) account.Membership {
	h.t.Helper()
	who, _, err := h.accounts.Ensure(h.t.Context(), email, password)
	if err != nil {
		h.t.Fatal(err)
	}
	token, err := member.ParseToken(sent.Token)
	if err == nil {
		err = h.members().Accept(h.t.Context(), t, who, token)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	m, err := h.accounts.Membership(h.t.Context(), t, who.ID)
	if err != nil {
		h.t.Fatal(err)
	}
	return m
}

// Roles, suspensions and open invitations move to another engine and go over to a successor. A token that was sent
// before remains valid.
func TestMembersMove(t *testing.T) {
	here := newHouse(t, pebble(t), newKeyring(t))
	here.start()
	red := here.found("red", "ann@example.com", 1)
	blue := here.found("blue", "eve@example.com", 2)
	red.send(2)
	blue.send(2)
	ann := &account.Session{Account: red.Membership.Account}
	invite := func(email string) member.Sent {
		t.Helper()
		sent, err := here.members().Invite(t.Context(), red.Tenant, ann, email, account.Approver)
		if err != nil {
			t.Fatal(err)
		}
		return sent
	}
	bob := here.join(red.Tenant, "bob@example.com", invite("bob@example.com"))
	joe := here.join(red.Tenant, "joe@example.com", invite("joe@example.com"))
	open, suspended := invite("late@example.com"), true
	if _, err := here.members().Change(t.Context(), red.Tenant, ann, bob.ID, member.Change{Suspended: &suspended}); err != nil {
		t.Fatal(err)
	}
	here.stop()
	here.fsck()

	there := newHouse(t, postgres(t), here.keyring)
	export := filepath.Join(t.TempDir(), "export")
	here.export(export, "")
	there.imports(export, "")
	same(t, there.engine, here.engine, red.Tenant)
	same(t, there.engine, here.engine, blue.Tenant)
	sameService(t, there.engine, here.engine)
	there.fsck()
	there.now = here.now
	there.start()
	there.checkMembers(red.Tenant, bob, joe)
	moved := red.at(there)
	there.freeze(moved)
	there.stop()
	if _, err := there.succession("red", "a test", nil); err != nil {
		t.Fatal(err)
	}
	there.start()
	now := moved.succeeded()
	there.checkMembers(now.Tenant, bob, joe)
	late := there.join(now.Tenant, "late@example.com", open)
	if late.Role != account.Approver {
		t.Errorf("got %+v", late)
	}
	if all, err := there.accounts.Members(t.Context(), blue.Tenant); err != nil || len(all) != 1 {
		t.Errorf("blue has %v, %v", all, err)
	}
	there.stop()
	there.fsck()
}

func (h *house) checkMembers(t id.Tenant, suspended, active account.Membership) {
	h.t.Helper()
	if _, err := h.accounts.Membership(h.t.Context(), t, suspended.Account); !fault.Is(err, fault.NotFound) {
		h.t.Errorf("suspended: got %v", err)
	}
	active.Tenant = t
	if m, err := h.accounts.Membership(h.t.Context(), t, active.Account); err != nil || m != active {
		h.t.Errorf("got %+v, %v, want %+v", m, err, active)
	}
	var open []storage.Record
	open, err := h.engine.Scan(h.t.Context(), t, "invitation", "", "", 10)
	if err != nil || len(open) != 1 {
		h.t.Errorf("invitations: got %v, %v", open, err)
	}
}
