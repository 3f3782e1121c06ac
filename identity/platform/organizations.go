package platform

import (
	"net/http"

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

// answerOrganization answers with the list's entry for one organization and, if they can be read, its settings.
func (c *Calls) answerOrganization(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	tenant, err := c.FindOrganization(r)
	if err != nil {
		return err
	}
	listed, err := c.Orgs.ListOrganization(r.Context(), tenant)
	if err != nil {
		return err
	}
	body := wire.OrganizationDetail{ListedOrganization: describeListedOrganization(listed)}
	if listed.Usage == nil {
		return edge.WriteJSON(w, http.StatusOK, body)
	}
	settings, err := c.Orgs.CurrentSettings(r.Context(), tenant)
	if err != nil {
		return err
	}
	own := describeLimits(settings)
	body.Origin, body.CreatedAt, body.Disclosure = settings.Origin, settings.CreatedAt, settings.Disclosure.String()
	body.SignIn, body.Limits = settings.SignIn, &own
	return edge.WriteJSON(w, http.StatusOK, body)
}

// listOrganizations lists all organizations of the service by slug.
func (c *Calls) listOrganizations(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	p, err := edge.ParsePage(r.URL.Query())
	if err != nil {
		return err
	}
	found, err := c.Orgs.ListOrganizations(r.Context(), id.Slug(p.After), p.Limit+1)
	if err != nil {
		return err
	}
	var body wire.ListedOrganizations
	body.Organizations, body.Next = edge.CutPage(p, found, func(l org.Listed) string { return string(l.Slug) },
		describeListedOrganization)
	return edge.WriteJSON(w, http.StatusOK, body)
}
