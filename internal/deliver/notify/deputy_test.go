package notify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
)

// A deputy gets the mails of the represented member's questions in the period, as that member does: also an escalation, and not
// those about what the represented member asked.
func TestDeputyIsTold(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newVoterWorld(t, open(t))
		owner, admin, approver, deputy := address(account.Owner, red), address(account.Admin, red), address(account.Approver, red), address(account.Member, red)
		all, err := w.accounts.Members(t.Context(), red)
		if err != nil {
			t.Fatal(err)
		}
		of := all[slices.IndexFunc(all, func(m account.StoredMembership) bool { return m.Role == account.Member })]
		_, err = w.members.NameDeputy(t.Context(), red, &account.Session{Account: w.asker}, member.NewDeputy{Membership: of.ID, Until: id.InstantOf(w.Clock().Add(24 * time.Hour))})
		if err != nil {
			t.Fatal(err)
		}
		named := w.sweep()
		wantMailed(t, "named", named, deputy)
		const letter = `%s named you as deputy: you vote on approvals in that member's place.

Organization: Number (number-%d)
Service: https://log.example
From: %s UTC
Until: %s UTC

In that time you are mailed when an approval waits. The two of you have one vote together, and the log says in whose place you voted.

If you do not want this, give it back on your account page:

https://log.example/account#deputy
`
		from, until := w.Clock().UTC().Format("2 Jan 2006 15:04"), w.Clock().Add(24*time.Hour).UTC().Format("2 Jan 2006 15:04")
		if m := named[deputy][0]; m.Subject != "You are the deputy of another member" || m.Text != fmt.Sprintf(letter, owner, red, from, until) {
			t.Errorf("got %q and %s", m.Subject, m.Text)
		}
		w.mustAsk(red, 1, "ik_operator")
		w.mustAsk(blue, 1, "ik_operator")
		w.Pass(3 * time.Second)
		w.readings = 0
		got := w.sweep()
		if w.readings != 2 {
			t.Errorf("the mails of two organizations read the deputies %d times", w.readings)
		}
		for _, role := range []account.Role{account.Owner, account.Admin, account.Approver} {
			delete(got, address(role, blue))
		}
		wantMailed(t, "in the period", got, owner, admin, approver, deputy)

		w.Pass(time.Hour)
		w.mustAsk(red, 2, "ik_owner") // which the owner created
		w.Pass(3 * time.Second)
		wantMailed(t, "the represented member asked", w.sweep(), admin, approver)

		if _, err := w.policies.Create(t.Context(), red, "acc_rules", []byte(remindPolicy)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.policies.Activate(t.Context(), red, "acc_rules", "remind"); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Hour)
		w.mustAsk(red, 3, "ik_operator")
		w.Pass(3 * time.Second)
		wantMailed(t, "it escalates later", w.sweep(), admin, approver)
		w.Pass(2 * time.Hour)
		w.remind()
		w.Pass(3 * time.Second)
		wantMailed(t, "escalated", w.sweep(), owner, admin, approver, deputy)

		w.Pass(20 * time.Hour)
		w.mustAsk(blue, 4, "ik_operator")
		w.activateOld(red)
		w.mustAsk(red, 4, "ik_operator")
		w.Pass(3 * time.Second)
		got = w.sweep()
		if got[deputy] != nil || got[owner] == nil {
			t.Errorf("after the period: got %v", got)
		}
	})
}

// activateOld activates a policy without escalation.
func (w *voterWorld) activateOld(tenant id.Tenant) {
	w.t.Helper()
	document := strings.ReplaceAll(strings.ReplaceAll(remindPolicy, `"remind"`, `"plain"`), `,"remind_after_seconds":3600,"escalate_after_seconds":7200,"escalate_to":"owner"`, "")
	if _, err := w.policies.Create(w.t.Context(), tenant, "acc_rules", []byte(document)); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.policies.Activate(w.t.Context(), tenant, "acc_rules", "plain"); err != nil {
		w.t.Fatal(err)
	}
}
