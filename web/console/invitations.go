package console

import (
	"net/http"
	"net/url"

	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/screen"
)

// readInvitations reads all open invitations, of which an organization has no more than a page of the interface holds.
func readInvitations(r *screen.Request) ([]wire.Invitation, error) {
	var found wire.Invitations
	err := r.Read(memberCalls(r)+"/invitations", url.Values{"limit": {mostMembers}}, &found)
	return found.Invitations, err
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
	var answer wire.SentInvitation
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
