package operator

import (
	"net/http"
	"net/url"

	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// organizationsView is the content of the list.
type organizationsView struct {
	State         state
	Organizations []wire.ListedOrganization
	Next          string // address of the next page
}

func showOrganizations(r *page.Request) (any, error) {
	var found wire.ListedOrganizations
	if err := r.Read(organizationCalls, r.PageQuery(), &found); err != nil {
		return nil, err
	}
	now, err := readState(r)
	return organizationsView{State: now, Organizations: found.Organizations, Next: r.NextPage(found.Next)}, err
}

// newView is the content of the form for a new organization.
type newView struct{ Disclosures []page.Option }

func showNewOrganization(*page.Request) (any, error) {
	return newView{Disclosures: page.Disclosures()}, nil
}

// foundedView is the content of the page that shows the secrets of a new organization.
type foundedView struct {
	wire.CreatedOrganization
	Owner, PublicURL string
}

func (p *pages) foundOrganization(r *page.Request) (page.Outcome, error) {
	made := foundedView{Owner: r.Value("admin_email"), PublicURL: p.PublicURL}
	body := map[string]string{"name": r.Value("name"), "slug": r.Value("slug"), "admin_email": made.Owner,
		"disclosure": r.Value("disclosure")}
	if plan := r.Value("plan"); plan != "" {
		body["plan"] = plan
	}
	if password := r.Form.Get("admin_password"); password != "" {
		body["admin_password"] = password
	}
	if err := r.Change(http.MethodPost, organizationCalls, body, &made.CreatedOrganization); err != nil {
		return page.Outcome{}, err
	}
	return page.ShowOnce(p.views, "founded", "The organization is made", made), nil
}

// organizationCall returns the path of the organization in the address, followed by more.
func organizationCall(r *page.Request, more string) string {
	return organizationCalls + "/" + url.PathEscape(r.PathParameter("organization")) + more
}
