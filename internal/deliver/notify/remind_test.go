package notify_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
)

// remindPolicy reminds approvers after an hour, and escalates to owners after two.
const remindPolicy = `{"policy_id":"remind","name":"Refunds","rules":[{"rule_id":"refund","tool":"acme.refund","decision":"allow_with_obligation","reason":"money leaves",
	"obligations":[{"type":"human_approval","ttl_seconds":86400,"remind_after_seconds":3600,"escalate_after_seconds":7200,"escalate_to":"owner"}]}]}`

// Approvers who have not voted are reminded once, and the second group is notified later, also if several processes sweep at
// once, and after a restart. A decided approval reminds nobody.
func TestReminders(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newVoterWorld(t, open(t))
		if _, err := w.policies.Create(t.Context(), red, "acc_rules", []byte(remindPolicy)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.policies.Activate(t.Context(), red, "acc_rules", "remind"); err != nil {
			t.Fatal(err)
		}
		owner, admin, approver := address(account.Owner, red), address(account.Admin, red), address(account.Approver, red)
		a := w.mustAsk(red, 1, "ik_operator")
		w.Pass(3 * time.Second)
		wantMailed(t, "first", w.sweep(), admin, approver)

		w.Pass(time.Hour - 4*time.Second)
		w.remind()
		wantMailed(t, "a second too early", w.sweep())
		w.Pass(time.Second)
		before := w.approvals
		w.open() // another process on the same store
		var both sync.WaitGroup
		for _, node := range []*approval.Approvals{before, w.approvals} {
			both.Go(func() { _ = node.Sweep(context.WithoutCancel(t.Context())) }) // one of them may be stale
		}
		both.Wait()
		w.remind()
		w.Pass(3 * time.Second)
		got := w.sweep()
		wantMailed(t, "reminded", got, admin, approver)
		if subject := got[admin][0].Subject; subject != "Reminder: Refund bot waits for you: acme.refund" {
			t.Errorf("reminder: got %q", subject)
		}
		w.Pass(30 * time.Minute)
		w.open()
		w.approvals.PolicyChanged(red) // all approvals are examined again
		w.remind()
		w.Pass(3 * time.Second)
		wantMailed(t, "again", w.sweep())

		w.Pass(30 * time.Minute)
		w.remind()
		w.Pass(3 * time.Second)
		got = w.sweep()
		wantMailed(t, "escalated", got, owner, admin, approver)
		if subject := got[owner][0].Subject; strings.HasPrefix(subject, "Reminder") {
			t.Errorf("the first mail of the owner: got %q", subject)
		}
		w.Pass(time.Hour)
		w.remind()
		wantMailed(t, "after the escalation", w.sweep())

		b := w.mustAsk(red, 2, "ik_operator")
		if _, err := w.approvals.Vote(t.Context(), red, b.ID, approval.Ballot{Account: w.asker, Email: owner, Vote: approval.Deny, Action: b.ActionDigest}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.approvals.Vote(t.Context(), red, a.ID, approval.Ballot{Account: w.asker, Email: owner, Vote: approval.Deny, Action: a.ActionDigest}); err != nil {
			t.Fatal(err)
		}
		w.Pass(3 * time.Hour)
		w.remind()
		w.Pass(3 * time.Second)
		wantMailed(t, "decided", w.sweep())
	})
}

// An escalation is a first mail for the second group, also after mails about other approvals and behind more pending ones than a mail looks
// at. What the policy asks of the first group alone sends the second one no mail.
func TestEscalationAfterOtherMails(t *testing.T) {
	w := newVoterWorld(t, enginetest.Pebble(t))
	if _, err := w.policies.Create(t.Context(), red, "acc_rules", []byte(remindPolicy)); err != nil {
		t.Fatal(err)
	}
	w.mustAsk(red, 1, "ik_operator")
	w.Pass(3 * time.Second)
	owner := address(account.Owner, red)
	if got := w.sweep(); len(got[owner]) != 1 {
		t.Fatalf("before the policy: got %v", got)
	}
	if _, err := w.policies.Activate(t.Context(), red, "acc_rules", "remind"); err != nil {
		t.Fatal(err)
	}
	w.Pass(time.Hour)
	for n := range 60 {
		w.mustAsk(red, 2+n, "ik_operator")
		w.Pass(time.Second)
	}
	w.Pass(3 * time.Second)
	if got := w.sweep(); len(got[owner]) != 0 {
		t.Errorf("asked of others: got %q", got[owner][0].Subject)
	}
	w.Pass(2*time.Hour - 62*time.Second)
	w.remind()
	w.Pass(3 * time.Second)
	got := w.sweep()[owner]
	if len(got) != 1 || strings.HasPrefix(got[0].Subject, "Reminder") {
		t.Fatalf("at the escalation: got %v", got)
	}
}

// A question that was asked before a mail, but was in the store only after it, is a new one in the next mail.
func TestQuestionWrittenLate(t *testing.T) {
	w := newVoterWorld(t, enginetest.Pebble(t))
	w.mustAsk(red, 1, "ik_operator")
	w.Pass(3 * time.Second)
	admin := address(account.Admin, red)
	if got := w.sweep()[admin]; len(got) != 1 {
		t.Fatalf("got %v", got)
	}
	w.Pass(-2 * time.Second)
	late := w.mustAsk(red, 2, "ik_operator")
	w.Pass(time.Hour)
	got := w.sweep()[admin]
	if len(got) != 1 || strings.HasPrefix(got[0].Subject, "Reminder") || !strings.Contains(got[0].Text, string(late.ID)) || !strings.Contains(got[0].Text, "1 more waits") {
		t.Fatalf("got %v", got)
	}
}

// remind settles what is due.
func (w *voterWorld) remind() {
	w.t.Helper()
	if err := w.approvals.Sweep(w.t.Context()); err != nil {
		w.t.Errorf("sweep: %v", err)
	}
}
