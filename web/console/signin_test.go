package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// The operator changes how an approver signs in. The approvals show it, the log has the change before the approver's
// vote, and an organization that requires a waiting time rejects the vote.
func TestChangedSignIn(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	requireApproval(ann, 1, "")
	eve := s.Red.Join("eve", "approver")
	first, second := s.Red.Ask(map[string]any{"trace_id": "a"}), s.Red.Ask(map[string]any{"trace_id": "b"})
	path := "/console/approvals/" + first.ID
	wantNot(t, "before", ann.Get(path), "Changed ways to sign in")
	s.Prove(eve)
	want(t, "counted without a hold", s.SignIn(eve).Post(path, "do", "approve", "action_digest", first.ActionDigest), http.StatusSeeOther)
	events := ann.Get("/console/events?signer=system").Body
	if change, vote := strings.Index(events, "sign in changed"), strings.Index(events, "approval"); change < 0 || vote < 0 || vote > change {
		t.Errorf("the change is not before the vote: change at %d, vote at %d", change, vote)
	}
	ann.Post("/console/settings", "do", "votes", "vote_hold_hours", "48").Want(t, "hold", http.StatusSeeOther)
	path = "/console/approvals/" + second.ID
	want(t, "shown", ann.Get(path), http.StatusOK, "Changed ways to sign in", eve, "The operator of this service set a new password")
	want(t, "in the list", ann.Get("/console/approvals"), http.StatusOK, "Changed ways to sign in", eve)
	p := s.SignIn(eve)
	want(t, "held", p.Get(path), http.StatusOK, "The organization rejects your votes for")
	want(t, "refused", p.Post(path, "do", "approve", "action_digest", second.ActionDigest), http.StatusForbidden, "your votes are refused until")
	bob := s.SignIn(s.Blue.Owner)
	wantNot(t, "another organization", bob.Get("/console/approvals"), "Changed ways to sign in", eve)
	s.Prove(s.Red.Owner)
	s.SignIn(s.Red.Owner).Post("/console/settings", "do", "votes", "vote_hold_hours", "0").Want(t, "an owner under the hold", http.StatusForbidden, "votes are refused until")
}
