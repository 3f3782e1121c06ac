package console

import (
	"net/url"

	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// readInvitations reads all open invitations. An organization has at most one page of them.
func readInvitations(r *page.Request) ([]wire.Invitation, error) {
	found, err := visitOf(r).Identity.ListInvitations(r.Context(), visitOf(r).person, url.Values{"limit": {mostMembers}})
	return found.Invitations, err
}

func (p *pages) invite(r *page.Request) (page.Outcome, error) {
	sent, err := visitOf(r).Identity.Invite(r.Context(), visitOf(r).person,
		identity.NewInvitation{Email: r.Value("email"), Role: account.Role(r.Value("role"))})
	return p.showSent(r, sent, err)
}

// resendInvitation creates a new link. The previous link becomes invalid.
func (p *pages) resendInvitation(r *page.Request) (page.Outcome, error) {
	sent, err := visitOf(r).Identity.ResendInvitation(r.Context(), visitOf(r).person, r.Value("invitation"))
	return p.showSent(r, sent, err)
}

// showSent shows the link of an invitation that was not mailed, unless err is set.
func (p *pages) showSent(r *page.Request, sent wire.SentInvitation, err error) (page.Outcome, error) {
	switch {
	case err != nil:
		return page.Outcome{}, err
	case sent.Mailed:
		return page.GoTo(r.Address(membersPage), "invitation-mailed"), nil
	}
	return page.ShowOnce(p.views, "openinvitation", "The invitation", sent), nil
}

func (p *pages) revokeInvitation(r *page.Request) (page.Outcome, error) {
	err := visitOf(r).Identity.RevokeInvitation(r.Context(), visitOf(r).person, r.Value("invitation"))
	return page.GoTo(r.Address(membersPage), "invitation-revoked"), err
}
