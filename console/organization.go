package console

import (
	"net/http"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
)

type organizationView struct {
	OrganizationID id.Organization `json:"organization_id"`
	Slug           id.Slug         `json:"slug"`
	Name           string          `json:"name"`
	Origin         id.Origin       `json:"origin"`
	Plan           string          `json:"plan"`
	Active         bool            `json:"active"`
	Disclosure     id.Disclosure   `json:"disclosure"`
	SelfReview     bool            `json:"self_review"`
	CreatedAt      id.Instant      `json:"created_at"`
	Fault          log.Level       `json:"fault,omitzero"` // of the ledger; with a fault the lists may be wrong
}

// answerOrganization shows settings beside the fault of their ledger.
func (s *Server) answerOrganization(r *request, settings *org.Settings) (answer, error) {
	view := describeOrganization(settings)
	var err error
	view.Fault, err = s.Orgs.Fault(r.Context(), settings.Tenant)
	return answer{http.StatusOK, view}, err
}

func describeOrganization(s *org.Settings) organizationView {
	return organizationView{
		OrganizationID: s.ID, Slug: s.Slug, Name: s.Name, Origin: s.Origin, Plan: s.Plan, Active: s.Active,
		Disclosure: s.Disclosure, SelfReview: s.SelfReview, CreatedAt: s.CreatedAt,
	}
}

func (s *Server) getOrganization(r *request) (answer, error) {
	settings, err := s.Orgs.CurrentSettings(r.Context(), r.who.Tenant)
	if err != nil {
		return answer{}, err
	}
	return s.answerOrganization(r, settings)
}

// patchOrganization changes the settings that belong to the organization. Plan, limits
// and activity belong to the operator.
func (s *Server) patchOrganization(r *request) (answer, error) {
	var body struct {
		Disclosure *id.Disclosure `json:"disclosure"`
		Name       *string        `json:"name"`
		SelfReview *bool          `json:"self_review"`
	}
	if err := r.decodeBody(&body); err != nil {
		return answer{}, err
	}
	patch := org.Patch{Disclosure: body.Disclosure, Name: body.Name, SelfReview: body.SelfReview,
		NoneOpen: s.Approvals.NoneOpen}
	settings, err := s.Orgs.Change(r.Context(), r.who.Tenant, string(r.who.Account), patch)
	if err != nil {
		return answer{}, err
	}
	return s.answerOrganization(r, settings)
}
