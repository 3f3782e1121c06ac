package platform

import (
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/wire"
)

type newOrganization struct {
	Name           string          `json:"name"`
	Slug           id.Slug         `json:"slug"`
	AdminEmail     string          `json:"admin_email"`
	AdminPassword  string          `json:"admin_password"`
	Plan           string          `json:"plan"`
	OrganizationID id.Organization `json:"organization_id"`
	Disclosure     id.Disclosure   `json:"disclosure"`
}

func (c *Calls) createOrganization(w http.ResponseWriter, r *http.Request, bounds edge.Body) error {
	var body newOrganization
	if err := decodeBody(r, bounds, &body); err != nil {
		return err
	}
	made, err := c.Provisioner.CreateOrganization(r.Context(), provision.Request{
		Name: body.Name, Slug: body.Slug, Plan: body.Plan, Organization: body.OrganizationID,
		Disclosure: body.Disclosure,
		AdminEmail: body.AdminEmail, AdminPassword: body.AdminPassword,
	})
	if err != nil {
		return err
	}
	identity := made.State.Identity()
	return edge.WriteJSON(w, http.StatusCreated, wire.CreatedOrganization{
		OrganizationID: identity.Organization, Slug: made.Slug, Origin: identity.Origin,
		LogKey: made.State.VerifierKey().String(), MembershipID: made.Membership.ID, Account: made.Account(),
		Agent:     made.Agent.Wire(),
		IngestKey: wire.IngestSecret{KeyID: made.IngestKey.ID, Secret: made.Token.Reveal()},
	})
}

// nullable distinguishes a member that is null from one that is absent.
type nullable[T any] struct {
	given bool
	value *T
}

// UnmarshalJSON is called if the member is present, even if it is null.
func (n *nullable[T]) UnmarshalJSON(b []byte) error {
	n.given = true
	return json.Unmarshal(b, &n.value)
}

type organizationChange struct {
	Plan   *string            `json:"plan"`
	Active *bool              `json:"active"`
	SignIn nullable[struct{}] `json:"sign_in"` // null removes the requirement
	Limits struct {
		EventsPerMonth      nullable[uint64] `json:"events_per_month"`
		Agents              nullable[uint64] `json:"agents"`
		IngestKeys          nullable[uint64] `json:"ingest_keys"`
		Policies            nullable[uint64] `json:"policies"`
		PolicyVersions      nullable[uint64] `json:"policy_versions"`
		StatementsPerMinute nullable[uint64] `json:"statements_per_minute"`
	} `json:"limits"`
}

func (c *organizationChange) patchSettings() org.Patch {
	p := org.Patch{Plan: c.Plan, Active: c.Active}
	if c.SignIn.given {
		p.SignIn = new(string)
	}
	if c.Limits.EventsPerMonth.given {
		p.EventsPerMonth = &c.Limits.EventsPerMonth.value
	}
	p.Limits = map[org.Limit]*uint64{}
	for name, n := range map[org.Limit]nullable[uint64]{
		org.AgentsLimit: c.Limits.Agents, org.IngestKeysLimit: c.Limits.IngestKeys,
		org.PoliciesLimit:       c.Limits.Policies,
		org.PolicyVersionsLimit: c.Limits.PolicyVersions, org.StatementsPerMinute: c.Limits.StatementsPerMinute,
	} {
		if n.given {
			p.Limits[name] = n.value
		}
	}
	return p
}

func describeLimits(s *org.Settings) wire.OwnLimits {
	own := func(name org.Limit) *uint64 {
		n, has := s.Own[name]
		if !has {
			return nil
		}
		return &n
	}
	return wire.OwnLimits{
		EventsPerMonth: s.EventsPerMonth, Agents: own(org.AgentsLimit), IngestKeys: own(org.IngestKeysLimit),
		Policies: own(org.PoliciesLimit), PolicyVersions: own(org.PolicyVersionsLimit),
		StatementsPerMinute: own(org.StatementsPerMinute),
	}
}

func (c *Calls) changeOrganization(w http.ResponseWriter, r *http.Request, bounds edge.Body) error {
	tenant, err := c.FindOrganization(r)
	if err != nil {
		return err
	}
	var body organizationChange
	if err := decodeBody(r, bounds, &body); err != nil {
		return err
	}
	if body.SignIn.value != nil {
		return fault.New(fault.Invalid, "sign_in must be null: only an owner requires a way to sign in")
	}
	settings, err := c.Orgs.Change(r.Context(), tenant, sysevent.Operator, body.patchSettings())
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, wire.ChangedOrganization{
		ID: settings.ID, Slug: settings.Slug, Name: settings.Name, Plan: settings.Plan, Active: settings.Active,
		Limits: describeLimits(settings), Disclosure: settings.Disclosure.String(),
	})
}
