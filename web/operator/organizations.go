package operator

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/identity/platform"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/internal/wire/issued"
	"github.com/agentledger/agentledger/web/page"
)

// organizationsView is the content of the list.
type organizationsView struct {
	report
	Organizations []wire.ListedOrganization
	Next          string // address of the next page
}

func (p *pages) showOrganizations(r *page.Request) (any, error) {
	found, err := p.Identity.Operator.ListOrganizations(r.Context(), r.PageQuery())
	if err != nil {
		return nil, err
	}
	now, err := p.readReport(r)
	return organizationsView{report: now, Organizations: found.Organizations, Next: r.NextPage(found.Next)}, err
}

// newView is the content of the form for a new organization.
type newView struct{ Disclosures []page.Option }

func showNewOrganization(*page.Request) (any, error) {
	return newView{Disclosures: page.Disclosures()}, nil
}

// foundedView is the content of the page that shows the secrets of a new organization.
type foundedView struct {
	issued.CreatedOrganization
	Owner, PublicURL string
}

func (p *pages) foundOrganization(r *page.Request) (page.Outcome, error) {
	wanted := platform.NewOrganization{Name: r.Value("name"), Slug: id.Slug(r.Value("slug")),
		AdminEmail: r.Value("admin_email"), AdminPassword: r.Form.Get("admin_password"), Plan: r.Value("plan")}
	if err := edge.ParseMember("disclosure", r.Value("disclosure"), &wanted.Disclosure); err != nil {
		return page.Outcome{}, err
	}
	made, err := p.Identity.Operator.CreateOrganization(r.Context(), wanted)
	if err != nil {
		return page.Outcome{}, err
	}
	return page.ShowOnce(p.views, "founded", "The organization is created",
		foundedView{CreatedOrganization: made, Owner: wanted.AdminEmail, PublicURL: p.PublicURL}), nil
}
