package console

import (
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/web/page"
)

// accountView is the content of the account page.
type accountView struct {
	*page.Person
	Address  string // of the account
	Deputies ownDeputies
}

func (p *pages) showAccount(r *page.Request) (any, error) {
	v := accountView{Person: r.Person, Address: r.Person.Account.Email}
	var err error
	v.Deputies, err = readOwnDeputies(r)
	return v, err
}

func (p *pages) changeProfile(r *page.Request) (page.Outcome, error) {
	_, err := visitOf(r).Identity.ChangeAccount(r.Context(), visitOf(r).person, identity.AccountPatch{
		DisplayName: new(r.Value("display_name")), ApprovalMail: new(r.Checked("approval_mail")), WeeklyMail: new(r.Checked("weekly_mail")),
		TimesInUTC: new(r.Value("times") == "utc")})
	return page.GoTo(r.Address("/account"), "saved"), err
}

// askEmail makes the service mail a link to a new address. The address changes when the user follows the link.
func (p *pages) askEmail(r *page.Request) (page.Outcome, error) {
	err := visitOf(r).Identity.BeginEmailChange(r.Context(), visitOf(r).person, r.Value("email"))
	return page.GoTo(r.Address("/account"), "email-asked"), err
}

// changePassword ends all other sessions of the account.
func (p *pages) changePassword(r *page.Request) (page.Outcome, error) {
	_, err := visitOf(r).Identity.ChangePassword(r.Context(), visitOf(r).person,
		identity.PasswordChange{Current: r.Form.Get("current_password"), New: r.Form.Get("new_password")})
	return page.GoTo(r.Address("/account"), "saved"), err
}

// switchOrganization moves the session to another organization. This accepts an offered membership.
func (p *pages) switchOrganization(r *page.Request) (page.Outcome, error) {
	var to id.Organization
	if err := edge.ParseMember("organization_id", r.Value("organization_id"), &to); err != nil {
		return page.Outcome{}, err
	}
	_, err := visitOf(r).Identity.SwitchOrganization(r.Context(), visitOf(r).person, to)
	return page.GoTo(r.Address("/console"), ""), err
}

// newOrganization returns the organization that a form describes.
func newOrganization(r *page.Request) identity.NewOrganization {
	return identity.NewOrganization{Name: r.Value("name"), Slug: id.Slug(r.Value("slug"))}
}

// foundOrganization creates an organization of the user's own, and shows its secrets once.
func (p *pages) foundOrganization(r *page.Request) (page.Outcome, error) {
	made, err := visitOf(r).Identity.FoundOrganization(r.Context(), visitOf(r).person, newOrganization(r))
	if err != nil {
		return page.Outcome{}, err
	}
	return p.showFounded(made), nil
}

// leaveOrganization ends the user's membership in the session's organization, and with it the session.
func (p *pages) leaveOrganization(r *page.Request) (page.Outcome, error) {
	if !r.Checked("sure") {
		return page.Outcome{}, fault.New(fault.Invalid, "Check the box to leave the organization")
	}
	err := visitOf(r).Identity.RemoveMember(r.Context(), visitOf(r).person, r.Person.User.MembershipID)
	return page.GoTo(r.Address("/signin"), "member-left"), err
}
