package approval_test

import (
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// A voter is offered to take an approving vote back for five minutes, while the approval is approved and not used.
func TestTakeBackUntil(t *testing.T) {
	w := newWorld(t)
	asked := w.ask(red, w.question(red))
	until := func(who account.ID) time.Duration {
		t.Helper()
		found, err := w.approvals.Find(t.Context(), red, asked.ID)
		if err != nil {
			t.Fatal(err)
		}
		got := w.approvals.TakeBackUntil(&found, who)
		if got == 0 {
			return 0
		}
		return time.Duration(got-id.InstantOf(w.Clock())) * time.Millisecond
	}
	check := func(when string, who account.ID, want time.Duration) {
		t.Helper()
		if got := until(who); got != want {
			t.Errorf("%s: %s: got %v, want %v", when, who, got, want)
		}
	}
	check("pending", bob, 0)
	w.approve(red, asked, bob)
	check("approved", bob, approval.TakeBackTime)
	check("approved by another", eve, 0)
	w.Pass(approval.TakeBackTime - time.Millisecond)
	check("at the end", bob, time.Millisecond)
	w.Pass(time.Millisecond)
	check("afterwards", bob, 0)

	q := w.question(red)
	q.Trace = "trc_2"
	asked = w.ask(red, q) // expires after 10 minutes
	w.Pass(7 * time.Minute)
	w.approve(red, asked, bob)
	check("shortly before its expiry", bob, 3*time.Minute)
	if _, err := w.approvals.Consume(t.Context(), red, asked.ID, w.claim(red, asked)); err != nil {
		t.Fatal(err)
	}
	check("used", bob, 0)

	q.Trace = "trc_3"
	asked = w.ask(red, q)
	if _, err := w.vote(red, asked, bob, approval.Deny); err != nil {
		t.Fatal(err)
	}
	check("denied", bob, 0)

	q.Trace = "trc_4"
	asked = w.ask(red, q)
	w.approve(red, asked, bob)
	if err := w.approvals.Revoke(t.Context(), red, bob, asked.ID, approval.Remark{Code: "taken_back"}); err != nil {
		t.Fatal(err)
	}
	check("taken back", bob, 0)
	if got := w.transitions(red, asked); len(got) != 3 || got[2] != "revoked by acc_bob" {
		t.Errorf("got %v", got)
	}
}
