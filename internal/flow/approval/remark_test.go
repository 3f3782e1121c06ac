package approval_test

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/flow/approval"
)

// The agent receives the remark of the deciding vote or of the revocation, and no other.
func TestRemarkReachesTheAgent(t *testing.T) {
	cast := func(w *world, a approval.Approval, who, vote, comment, code string) {
		w.t.Helper()
		voter := map[string]approval.Ballot{"bob": {Account: bob}, "eve": {Account: eve}}[who]
		voter.Vote, voter.Action, voter.Remark = vote, a.ActionDigest, approval.Remark{Comment: comment, Code: code}
		if _, err := w.approvals.Vote(w.t.Context(), red, a.ID, voter); err != nil {
			w.t.Fatal(err)
		}
	}
	said := approval.Remark{Comment: "too\nmuch", Code: "over_budget"}
	for name, tt := range map[string]struct {
		do     func(w *world, a approval.Approval)
		status approval.Status
		want   approval.Remark
		stated string
	}{
		"first of two": {func(w *world, a approval.Approval) { cast(w, a, "bob", "approve", "fine", "ok") }, approval.Pending, approval.Remark{}, `"reason":"fine","reason_code":"ok"`},
		"second of two": {func(w *world, a approval.Approval) {
			cast(w, a, "bob", "approve", "fine", "ok")
			cast(w, a, "eve", "approve", "", "checked")
		}, approval.Approved, approval.Remark{Code: "checked"}, `"reason_code":"checked"`},
		"denied": {func(w *world, a approval.Approval) {
			cast(w, a, "bob", "approve", "fine", "ok")
			cast(w, a, "eve", "deny", said.Comment, said.Code)
		}, approval.Denied, said, `"reason":"too\nmuch","reason_code":"over_budget"`},
		"revoked": {func(w *world, a approval.Approval) {
			cast(w, a, "bob", "approve", "fine", "ok")
			if err := w.approvals.Revoke(w.t.Context(), red, "acc_eve", a.ID, said); err != nil {
				w.t.Fatal(err)
			}
		}, approval.Revoked, said, `"reason":"too\nmuch","reason_code":"over_budget"`},
		"cancelled": {func(w *world, a approval.Approval) {
			cast(w, a, "bob", "approve", "fine", "ok")
			if err := w.approvals.Cancel(w.t.Context(), red, a.IngestKeyID, a.ID); err != nil {
				w.t.Fatal(err)
			}
		}, approval.Cancelled, approval.Remark{}, `"transition":"cancelled"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.activate(red, "two", 2)
			a := w.ask(red, w.question(red))
			tt.do(w, a)
			got, err := w.approvals.Get(t.Context(), red, a.IngestKeyID, a.ID, 0)
			if err != nil || got.Status != tt.status || got.Remark != tt.want {
				t.Errorf("got %s %+v, %v, want %s %+v", got.Status, got.Remark, err, tt.status, tt.want)
			}
			all := w.Audit(t, red)
			if last := all[len(all)-1].Payload; !strings.Contains(last, tt.stated) {
				t.Errorf("ledger: got %s, want %s", last, tt.stated)
			}
			if _, err := w.approvals.Get(t.Context(), blue, a.IngestKeyID, a.ID, 0); !fault.Is(err, fault.NotFound) {
				t.Errorf("the other organization: got %v", err)
			}
		})
	}
}

// Remarks are bounded in votes and revocations, and a rejected remark changes nothing.
func TestRemarkBounds(t *testing.T) {
	w := newWorld(t)
	a := w.ask(red, w.question(red))
	code := "reason_code must match [a-z][a-z0-9_]{0,63}"
	for name, tt := range map[string]struct {
		remark        approval.Remark
		vote, revoked string
	}{
		"a long comment":  {approval.Remark{Comment: strings.Repeat("ä", 1025)}, "comment must have at most 1024 characters", "reason must have at most 1024 characters"},
		"not UTF-8":       {approval.Remark{Comment: "\xff"}, "comment must have at most 1024 characters", "reason must have at most 1024 characters"},
		"a long code":     {approval.Remark{Code: strings.Repeat("a", 65)}, code, code},
		"a code of words": {approval.Remark{Code: "over budget"}, code, code},
		"upper case":      {approval.Remark{Code: "Budget"}, code, code},
	} {
		_, err := w.approvals.Vote(t.Context(), red, a.ID, approval.Ballot{Account: bob, Vote: "deny", Action: a.ActionDigest, Remark: tt.remark})
		if got := fault.Of(err); got.Kind != fault.Invalid || got.Message != tt.vote {
			t.Errorf("%s: got %v, want %s", name, err, tt.vote)
		}
		err = w.approvals.Revoke(t.Context(), red, "acc_bob", a.ID, tt.remark)
		if got := fault.Of(err); got.Kind != fault.Invalid || got.Message != tt.revoked {
			t.Errorf("%s: got %v, want %s", name, err, tt.revoked)
		}
	}
	longest := approval.Remark{Comment: strings.Repeat("ä", 1024), Code: "a" + strings.Repeat("0", 63)}
	after, err := w.approvals.Vote(t.Context(), red, a.ID, approval.Ballot{Account: bob, Vote: "deny", Action: a.ActionDigest, Remark: longest})
	if err != nil || after.Remark != longest {
		t.Errorf("the longest: got %+v, %v", after.Remark, err)
	}
}
