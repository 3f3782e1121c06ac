package console

import (
	"net/http"
	"net/url"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// accountView is the content of the account page.
type accountView struct {
	*page.Person
	Address string // of the account
}

func (p *pages) showAccount(r *page.Request) (any, error) {
	return accountView{Person: r.Person, Address: r.Person.Account.Email}, nil
}

func (p *pages) changeProfile(r *page.Request) (page.Outcome, error) {
	body := map[string]any{"display_name": r.Value("display_name"), "approval_mail": r.Checked("approval_mail")}
	err := r.Change(http.MethodPatch, "/v1/id/account", body, nil)
	return page.GoTo(r.Address("/account"), "saved"), err
}

// askEmail makes the service mail a link to a new address. The address changes when the user follows the link.
func (p *pages) askEmail(r *page.Request) (page.Outcome, error) {
	err := r.Change(http.MethodPost, "/v1/id/account/email", map[string]string{"email": r.Value("email")}, nil)
	return page.GoTo(r.Address("/account"), "email-asked"), err
}

// changePassword ends all other sessions of the account.
func (p *pages) changePassword(r *page.Request) (page.Outcome, error) {
	body := map[string]string{"current": r.Form.Get("current_password"), "new": r.Form.Get("new_password")}
	err := r.Change(http.MethodPost, "/v1/id/account/password", body, nil)
	return page.GoTo(r.Address("/account"), "saved"), err
}

// switchOrganization moves the session to another organization. This accepts an offered membership.
func (p *pages) switchOrganization(r *page.Request) (page.Outcome, error) {
	body := map[string]string{"organization_id": r.Value("organization_id")}
	err := r.Change(http.MethodPost, "/v1/id/orgs/switch", body, nil)
	return page.GoTo(r.Address("/console"), ""), err
}

// foundOrganization creates an organization of the user's own, and shows its secrets once.
func (p *pages) foundOrganization(r *page.Request) (page.Outcome, error) {
	var made wire.Founded
	body := map[string]string{"name": r.Value("name"), "slug": r.Value("slug")}
	if err := r.Change(http.MethodPost, "/v1/id/orgs", body, &made); err != nil {
		return page.Outcome{}, err
	}
	return p.showFounded(made), nil
}

// leaveOrganization ends the user's membership in the session's organization, and with it the session.
func (p *pages) leaveOrganization(r *page.Request) (page.Outcome, error) {
	if !r.Checked("sure") {
		return page.Outcome{}, fault.New(fault.Invalid, "Check the box to leave the organization")
	}
	path := "/v1/id/orgs/" + r.Person.Organization.ID.String() + "/members/" +
		url.PathEscape(r.Person.User.MembershipID)
	err := r.Change(http.MethodDelete, path, nil, nil)
	return page.GoTo(r.Address("/signin"), "member-left"), err
}
