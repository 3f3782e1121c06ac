package console_test

import (
	"net/http"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// A person registers a passkey on the page of the account, and signs a vote on the page of the approval.
func TestSignedVoteInChromium(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	requireApproval(ann, 1, "")
	ann.Call(http.MethodPatch, "/v1/console/organization", map[string]any{"signed_votes": "required"}, nil)
	eve := s.Red.Join("eve", "approver")
	asked := s.Red.Ask(nil)
	b := s.Browser()
	b.AddAuthenticator()
	b.SignIn(eve)
	b.Visit("/account/factors")
	b.Fill("passkey_name", "phone")
	b.Press(`button[value="prepare"]`)
	b.Start(`button[data-passkey="prepared"]`)
	b.AwaitText("Sign votes with this passkey")
	b.Start("button[data-voter]")
	b.AwaitText("No longer")
	b.Visit("/console/approvals/" + asked.ID)
	b.Start(`button[data-sign]`)
	b.AwaitText("by the approver's passkey, registered on")
	ann.Get("/console/approvals/"+asked.ID).Want(t, "approved", http.StatusOK, "It is approved, not used yet", "registered on")
	s.Red.Consume(asked)
	verifyEverywhere(t, ann)
}
