package platform

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/internal/wire/issued"
)

// NewOrganization is the request for an organization. Members after AdminEmail may be zero.
type NewOrganization struct {
	Name           string          `json:"name"`
	Slug           id.Slug         `json:"slug"`
	AdminEmail     string          `json:"admin_email"`
	AdminPassword  string          `json:"admin_password"`
	Plan           string          `json:"plan"`
	OrganizationID id.Organization `json:"organization_id"`
	Disclosure     id.Disclosure   `json:"disclosure"`
}

func (c *Calls) createOrganization(w http.ResponseWriter, r *http.Request, bounds edge.Body) error {
	var body NewOrganization
	if err := decodeBody(r, bounds, &body); err != nil {
		return err
	}
	made, err := c.CreateOrganization(r.Context(), body)
	return write(w, http.StatusCreated, made, err)
}

// CreateOrganization creates an organization with its owner, its first agent and its first ingest key.
func (c *Calls) CreateOrganization(ctx context.Context, wanted NewOrganization) (issued.CreatedOrganization, error) {
	made, err := c.Provisioner.CreateOrganization(ctx, provision.Request{
		Name: wanted.Name, Slug: wanted.Slug, Plan: wanted.Plan, Organization: wanted.OrganizationID,
		Disclosure: wanted.Disclosure, AdminEmail: wanted.AdminEmail, AdminPassword: wanted.AdminPassword,
	})
	if err != nil {
		return issued.CreatedOrganization{}, err
	}
	identity := made.State.Identity()
	return issued.CreatedOrganization{
		OrganizationID: identity.Organization, Slug: made.Slug, Origin: identity.Origin,
		LogKey: made.State.VerifierKey().String(), MembershipID: made.Membership.ID, Account: made.Account(),
		Agent:     made.Agent.Wire(),
		IngestKey: wire.IngestSecret{KeyID: made.IngestKey.ID, Secret: made.Token.Reveal()},
	}, nil
}

// Nullable is a member that may be null, absent or a value.
type Nullable[T any] struct {
	Given bool // present; null if Value is nil
	Value *T
}

// UnmarshalJSON is called if the member is present, even if it is null.
func (n *Nullable[T]) UnmarshalJSON(b []byte) error {
	n.Given = true
	return json.Unmarshal(b, &n.Value)
}

// OrganizationPatch is a change of an organization. Absent members stay as they are.
type OrganizationPatch struct {
	Plan   *string            `json:"plan"`
	Active *bool              `json:"active"`
	SignIn Nullable[struct{}] `json:"sign_in"` // null removes the requirement
	Limits LimitsPatch        `json:"limits"`
}

// LimitsPatch changes the limits that override those of the plan. Null removes a limit.
type LimitsPatch struct {
	EventsPerMonth      Nullable[uint64] `json:"events_per_month"`
	Agents              Nullable[uint64] `json:"agents"`
	IngestKeys          Nullable[uint64] `json:"ingest_keys"`
	Policies            Nullable[uint64] `json:"policies"`
	PolicyVersions      Nullable[uint64] `json:"policy_versions"`
	StatementsPerMinute Nullable[uint64] `json:"statements_per_minute"`
}

func (p *OrganizationPatch) patchSettings() org.Patch {
	patch := org.Patch{Plan: p.Plan, Active: p.Active}
	if p.SignIn.Given {
		patch.SignIn = new(string)
	}
	if p.Limits.EventsPerMonth.Given {
		patch.EventsPerMonth = &p.Limits.EventsPerMonth.Value
	}
	patch.Limits = map[org.Limit]*uint64{}
	for name, n := range map[org.Limit]Nullable[uint64]{
		org.AgentsLimit: p.Limits.Agents, org.IngestKeysLimit: p.Limits.IngestKeys,
		org.PoliciesLimit:       p.Limits.Policies,
		org.PolicyVersionsLimit: p.Limits.PolicyVersions, org.StatementsPerMinute: p.Limits.StatementsPerMinute,
	} {
		if n.Given {
			patch.Limits[name] = n.Value
		}
	}
	return patch
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
	var patch OrganizationPatch
	if err := decodeBody(r, bounds, &patch); err != nil {
		return err
	}
	changed, err := c.ChangeOrganization(r.Context(), organizationOfPath(r), patch)
	return write(w, http.StatusOK, changed, err)
}

// ChangeOrganization changes the settings of an organization that the operator controls.
func (c *Calls) ChangeOrganization(
	ctx context.Context, organization string, patch OrganizationPatch,
) (wire.ChangedOrganization, error) {
	tenant, err := c.FindOrganization(ctx, organization)
	if err != nil {
		return wire.ChangedOrganization{}, err
	}
	if patch.SignIn.Value != nil {
		return wire.ChangedOrganization{}, fault.New(fault.Invalid,
			"sign_in must be null: only an owner requires a way to sign in")
	}
	settings, err := c.Orgs.Change(ctx, tenant, sysevent.Operator, patch.patchSettings())
	if err != nil {
		return wire.ChangedOrganization{}, err
	}
	return wire.ChangedOrganization{
		ID: settings.ID, Slug: settings.Slug, Name: settings.Name, Plan: settings.Plan, Active: settings.Active,
		Limits: describeLimits(settings), Disclosure: settings.Disclosure.String(),
	}, nil
}
