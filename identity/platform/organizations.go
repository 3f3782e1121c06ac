package platform

import (
	"context"
	"net/http"
	"net/url"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/wire"
)

func describeListedOrganization(l org.Listed) wire.ListedOrganization {
	view := wire.ListedOrganization{ID: l.ID, Slug: l.Slug, Name: l.Name, Plan: l.Plan, Active: l.Active,
		Unread: l.Unread, Fault: string(l.Fault)}
	if u := l.Usage; u != nil {
		view.Usage = &wire.OrganizationUsage{Month: u.Month, EventsThisMonth: u.EventsThisMonth, ResetsAt: u.ResetsAt,
			IngestKeys: u.IngestKeys.Open(), EventsPerMonth: wire.Number(u.EventsPerMonth)}
	}
	return view
}

func (c *Calls) answerOrganization(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	shown, err := c.ShowOrganization(r.Context(), organizationOfPath(r))
	return write(w, http.StatusOK, shown, err)
}

// ShowOrganization returns the list's entry for one organization and, if they can be read, its settings.
func (c *Calls) ShowOrganization(ctx context.Context, organization string) (wire.OrganizationDetail, error) {
	tenant, err := c.FindOrganization(ctx, organization)
	if err != nil {
		return wire.OrganizationDetail{}, err
	}
	listed, err := c.Orgs.ListOrganization(ctx, tenant)
	if err != nil {
		return wire.OrganizationDetail{}, err
	}
	body := wire.OrganizationDetail{ListedOrganization: describeListedOrganization(listed)}
	if listed.Usage == nil {
		return body, nil
	}
	settings, err := c.Orgs.CurrentSettings(ctx, tenant)
	if err != nil {
		return wire.OrganizationDetail{}, err
	}
	own := describeLimits(settings)
	body.Origin, body.CreatedAt, body.Disclosure = settings.Origin, settings.CreatedAt, settings.Disclosure.String()
	body.SignIn, body.Limits = settings.SignIn, &own
	return body, nil
}

func (c *Calls) listOrganizations(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	found, err := c.ListOrganizations(r.Context(), r.URL.Query())
	return write(w, http.StatusOK, found, err)
}

// ListOrganizations returns a page of the organizations of the service by slug.
func (c *Calls) ListOrganizations(ctx context.Context, query url.Values) (wire.ListedOrganizations, error) {
	var body wire.ListedOrganizations
	p, err := edge.ParsePage(query)
	if err != nil {
		return body, err
	}
	found, err := c.Orgs.ListOrganizations(ctx, id.Slug(p.After), p.Limit+1)
	if err != nil {
		return body, err
	}
	body.Organizations, body.Next = edge.CutPage(p, found, func(l org.Listed) string { return string(l.Slug) },
		describeListedOrganization)
	return body, nil
}
