package console_test

import (
	"testing"

	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/storage"
)

// The vote of a member who is suspended, removed or in another role at the quorum does not count. It counts again when
// the member is reinstated.
func TestVotesOfMembersWhoLostTheRole(t *testing.T) {
	suspended, active, auditor := true, false, account.Auditor
	for name, c := range map[string]struct {
		lose, regain member.Change
		removed      bool
	}{
		"suspended":    {lose: member.Change{Suspended: &suspended}, regain: member.Change{Suspended: &active}},
		"another role": {lose: member.Change{Role: &auditor}, regain: member.Change{Role: new(account.Approver)}},
		"removed":      {removed: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			accounts := account.New(account.Options{Records: w.Store, Clock: w.Clock})
			people := member.New(member.Options{Records: w.Store, Events: w.SystemEvents, Accounts: accounts, Clock: w.Clock,
				Quota: &quota.Quota{Records: w.Store, Clock: w.Clock}})
			approvals := approval.New(approval.Options{
				Records: w.Store, Events: w.SystemEvents, Ledgers: w.Ledgers, Policies: w.policies, Agents: w.agents,
				Organizations: w.orgs, Members: accounts, Keyring: w.Keyring(), Clock: w.Clock, Webhooks: w.webhooks,
			})
			voters := map[string]account.Membership{}
			for who, role := range map[string]account.Role{"ann": account.Owner, "bob": account.Approver, "eve": account.Approver, "joe": account.Approver} {
				known, _, err := accounts.Ensure(t.Context(), who+"@example.com", "")
				if err != nil {
					t.Fatal(err)
				}
				record, m, err := accounts.NewMembership(t.Context(), red, known.ID, role)
				if err != nil {
					t.Fatal(err)
				}
				if err := w.Store.Write(t.Context(), red, []storage.Change{record}); err != nil {
					t.Fatal(err)
				}
				voters[who] = m
			}
			ann := &account.Session{Account: voters["ann"].Account}
			question := w.ask(red) // two approvals are required
			vote := func(who string) approval.Status {
				t.Helper()
				after, err := approvals.Vote(t.Context(), red, question.ID, approval.Ballot{
					Account: voters[who].Account, Email: who + "@example.com", Vote: approval.Approve, Action: question.ActionDigest,
				})
				if err != nil {
					t.Fatal(err)
				}
				return after.Status
			}
			change := func(c member.Change) {
				t.Helper()
				if _, err := people.Change(t.Context(), red, ann, voters["bob"].ID, c); err != nil {
					t.Fatal(err)
				}
			}
			if got := vote("bob"); got != approval.Pending {
				t.Fatalf("first vote: got %s", got)
			}
			if c.removed {
				if err := people.Remove(t.Context(), red, ann, voters["bob"].ID); err != nil {
					t.Fatal(err)
				}
			} else {
				change(c.lose)
			}
			if got := vote("eve"); got != approval.Pending {
				t.Errorf("second vote: got %s, want pending", got)
			}
			if !c.removed {
				change(c.regain)
			}
			if got := vote("joe"); got != approval.Approved {
				t.Errorf("third vote: got %s", got)
			}
		})
	}
}
