package console

import (
	"net/http"
	"net/url"

	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// readInvitations reads all open invitations. An organization has at most one page of them.
func readInvitations(r *page.Request) ([]wire.Invitation, error) {
	found, err := visitOf(r).Identity.ListInvitations(r.Context(), visitOf(r).session, url.Values{"limit": {mostMembers}})
	return found.Invitations, err
}

func (p *pages) invite(r *page.Request) (page.Outcome, error) {
	body := map[string]string{"email": r.Value("email"), "role": r.Value("role")}
	return p.send(r, memberCalls(r)+"/invitations", body)
}

// resendInvitation creates a new link. The previous link becomes invalid.
func (p *pages) resendInvitation(r *page.Request) (page.Outcome, error) {
	return p.send(r, invitationCall(r)+"/resend", nil)
}

func (p *pages) send(r *page.Request, path string, body any) (page.Outcome, error) {
	var answer wire.SentInvitation
	if err := r.Change(http.MethodPost, path, body, &answer); err != nil {
		return page.Outcome{}, err
	}
	if answer.Mailed {
		return page.GoTo(r.Address(membersPage), "invitation-mailed"), nil
	}
	return page.ShowOnce(p.views, "openinvitation", "The invitation", answer), nil
}

func (p *pages) revokeInvitation(r *page.Request) (page.Outcome, error) {
	err := r.Change(http.MethodDelete, invitationCall(r), nil, nil)
	return page.GoTo(r.Address(membersPage), "invitation-revoked"), err
}

func invitationCall(r *page.Request) string {
	return memberCalls(r) + "/invitations/" + url.PathEscape(r.Value("invitation"))
}
