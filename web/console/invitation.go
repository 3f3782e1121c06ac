package console

import (
	"strings"

	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// invitationView is the content of an invitation's page. Without a preview it asks for the token.
type invitationView struct {
	Token      string
	Invitation *wire.HeldInvitation
	SignedIn   string // email address of the session's account; "" if none
	IsInvited  bool   // the session belongs to the invited address
}

// MayAccept reports whether the session is sufficient to accept. An account that the token takes over needs a new
// password or passkey, as a visitor does.
func (v invitationView) MayAccept() bool { return v.IsInvited && v.Invitation.AccountExists }

// showInvitation shows the invitation again after a refused form, and asks strangers for a token.
func (p *pages) showInvitation(r *page.Request) (any, error) {
	v := invitationView{Token: r.Value("token")}
	if r.Form.Get("do") != "accept" {
		return v, nil
	}
	shown, err := p.previewInvitation(r)
	if err != nil {
		return v, nil // the token is invalid, and the form's error explains why
	}
	r.Title = "Invitation to " + shown.Invitation.Name
	return shown, nil
}

// openInvitation shows the invitation of a token. It changes nothing.
func (p *pages) openInvitation(r *page.Request) (page.Outcome, error) {
	v, err := p.previewInvitation(r)
	if err != nil {
		return page.Outcome{}, err
	}
	return page.ShowOnce(p.views, "invitation", "Invitation to "+v.Invitation.Name, v).
		WithScript("token.js", "passkeyform.js", "passkey.js", "times.js"), nil
}

func (p *pages) previewInvitation(r *page.Request) (invitationView, error) {
	v := invitationView{Token: r.Value("token")}
	held, err := visitOf(r).Identity.PreviewInvitation(r.Context(), visitOf(r).person, v.Token)
	v.Invitation = &held
	if r.Person != nil {
		v.SignedIn = r.Person.Account.Email
		v.IsInvited = strings.EqualFold(v.SignedIn, v.Invitation.Email)
	}
	return v, err
}

// acceptInvitation makes the holder of a token a member, by the session, a password or a passkey.
func (p *pages) acceptInvitation(r *page.Request) (page.Outcome, error) {
	passkey, err := newPasskey(r, "First passkey")
	if err != nil {
		return page.Outcome{}, err
	}
	_, err = visitOf(r).Identity.AcceptInvitation(r.Context(), visitOf(r).person, identity.Acceptance{
		Token: r.Value("token"), DisplayName: r.Value("display_name"), Password: r.Form.Get("password"), Passkey: passkey})
	return page.GoTo(r.Address("/console"), "joined"), err
}
