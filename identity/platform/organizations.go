package platform

import (
	"net/http"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
)

type listedOrganization struct {
	OrganizationID id.Organization    `json:"organization_id"`
	Slug           id.Slug            `json:"slug"`
	Name           string             `json:"name"`
	Plan           string             `json:"plan"`
	Active         bool               `json:"active"`
	Usage          *organizationUsage `json:"usage"` // null: it can't be read
	Unread         string             `json:"unread,omitzero"`
	Fault          log.Level          `json:"fault,omitzero"`
}

type organizationUsage struct {
	Month           string     `json:"month"`
	EventsThisMonth uint64     `json:"events_this_month"`
	EventsPerMonth  *uint64    `json:"events_per_month"` // null: no cap
	ResetsAt        id.Instant `json:"resets_at"`
	IngestKeys      uint64     `json:"ingest_keys"`
}

func describeListedOrganization(l org.Listed) listedOrganization {
	view := listedOrganization{OrganizationID: l.ID, Slug: l.Slug, Name: l.Name, Plan: l.Plan, Active: l.Active,
		Unread: l.Unread, Fault: l.Fault}
	if u := l.Usage; u != nil {
		view.Usage = &organizationUsage{Month: u.Month, EventsThisMonth: u.EventsThisMonth, ResetsAt: u.ResetsAt,
			IngestKeys: u.IngestKeys.Open()}
		if u.EventsPerMonth != 0 {
			view.Usage.EventsPerMonth = &u.EventsPerMonth
		}
	}
	return view
}

// answerOrganization tells of one organization as the list does, with its settings where they can be read.
func (c *Calls) answerOrganization(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	tenant, err := c.FindOrganization(r)
	if err != nil {
		return err
	}
	listed, err := c.Orgs.ListOrganization(r.Context(), tenant)
	if err != nil {
		return err
	}
	body := struct {
		listedOrganization `json:",inline"`
		Origin             id.Origin     `json:"origin,omitzero"`
		CreatedAt          id.Instant    `json:"created_at,omitzero"`
		Disclosure         id.Disclosure `json:"disclosure,omitzero"`
		SignIn             string        `json:"sign_in,omitzero"`
		Limits             *limits       `json:"limits,omitzero"`
	}{listedOrganization: describeListedOrganization(listed)}
	if listed.Usage == nil {
		return edge.WriteJSON(w, http.StatusOK, body)
	}
	is, err := c.Orgs.CurrentSettings(r.Context(), tenant)
	if err != nil {
		return err
	}
	own := describeLimits(is)
	body.Origin, body.CreatedAt, body.Disclosure = is.Origin, is.CreatedAt, is.Disclosure
	body.SignIn, body.Limits = is.SignIn, &own
	return edge.WriteJSON(w, http.StatusOK, body)
}

// listOrganizations lists all organizations of the service for its operator, by slug.
func (c *Calls) listOrganizations(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	p, err := edge.ParsePage(r)
	if err != nil {
		return err
	}
	found, err := c.Orgs.ListOrganizations(r.Context(), id.Slug(p.After), p.Limit+1)
	if err != nil {
		return err
	}
	var body struct {
		Organizations []listedOrganization `json:"organizations"`
		Next          *string              `json:"next"`
	}
	body.Organizations, body.Next = edge.CutPage(p, found, func(l org.Listed) string { return string(l.Slug) },
		describeListedOrganization)
	return edge.WriteJSON(w, http.StatusOK, body)
}
