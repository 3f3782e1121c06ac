package console

import (
	"net/http"
	"net/url"

	"github.com/agentledger/agentledger/web/screen"
)

// invitation is an open invitation as the interface shows it.
type invitation struct {
	InvitationID string `json:"invitation_id"`
	Email        string `json:"email"`
	Role         string `json:"role"`
	CreatedAt    string `json:"created_at"`
	CreatedBy    string `json:"created_by"`
	ExpiresAt    string `json:"expires_at"`
}

// readInvitations reads all open invitations, of which an organization has no more than a page of the interface holds.
func readInvitations(r *screen.Request) ([]invitation, error) {
	var found struct {
		Invitations []invitation `json:"invitations"`
	}
	err := r.Read(memberCalls(r)+"/invitations", url.Values{"limit": {mostMembers}}, &found)
	return found.Invitations, err
}

// sent is the answer to an invitation. The link is empty when a mail has it.
type sent struct {
	ExpiresAt string `json:"expires_at"`
	URL       string `json:"url"`
	Mailed    bool   `json:"mailed"`
}

func (p *pages) invite(r *screen.Request) (screen.Outcome, error) {
	body := map[string]string{"email": r.Value("email"), "role": r.Value("role")}
	return p.send(r, memberCalls(r)+"/invitations", body)
}

// resendInvitation makes a new link. The one before is of no use any more.
func (p *pages) resendInvitation(r *screen.Request) (screen.Outcome, error) {
	return p.send(r, invitationCall(r)+"/resend", nil)
}

func (p *pages) send(r *screen.Request, path string, body any) (screen.Outcome, error) {
	var answer sent
	if err := r.Change(http.MethodPost, path, body, &answer); err != nil {
		return screen.Outcome{}, err
	}
	if answer.Mailed {
		return screen.GoTo(r.Address(membersPage), "invitation-mailed"), nil
	}
	return screen.ShowOnce(p.views, "openinvitation", "The invitation", answer), nil
}

func (p *pages) revokeInvitation(r *screen.Request) (screen.Outcome, error) {
	err := r.Change(http.MethodDelete, invitationCall(r), nil, nil)
	return screen.GoTo(r.Address(membersPage), "invitation-revoked"), err
}

func invitationCall(r *screen.Request) string {
	return memberCalls(r) + "/invitations/" + url.PathEscape(r.Value("invitation"))
}
