package console

import (
	"context"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/wire"
)

// describeSettings describes settings and the fault of the organization's ledger.
func (s *Server) describeSettings(ctx context.Context, settings *org.Settings) (wire.Organization, error) {
	view := describeOrganization(settings)
	level, err := s.Orgs.Fault(ctx, settings.Tenant)
	view.Fault = string(level)
	return view, err
}

func describeOrganization(s *org.Settings) wire.Organization {
	return wire.Organization{
		ID: s.ID, Slug: s.Slug, Name: s.Name, Origin: s.Origin, Plan: s.Plan, Active: s.Active,
		Disclosure: s.Disclosure.String(), SelfReview: s.SelfReview, TwoPerson: s.TwoPerson, Published: s.Published,
		SignIn: wire.RequiredSignIn{Require: wire.Text(s.SignIn)}, RetentionDays: s.RetentionDays,
		LegalHold: s.LegalHold, VoteHoldHours: s.VoteHoldHours, SignedVotes: nameSignedVotes(s.SignedVotes), ColumnsInMail: s.ColumnsInMail,
		CreatedAt: s.CreatedAt,
	}
}

const (
	signedOptional = "optional"
	signedRequired = "required"
)

func nameSignedVotes(required bool) string {
	if required {
		return signedRequired
	}
	return signedOptional
}

// parseSignedVotes returns whether signed votes are required, or nil for no change.
func parseSignedVotes(value *string) (*bool, error) {
	if value == nil {
		return nil, nil
	}
	required := *value == signedRequired
	if !required && *value != signedOptional {
		return nil, fault.New(fault.Invalid, "signed_votes must be optional or required")
	}
	return &required, nil
}

// checkVoteRules refuses a caller who may not change the rules of votes. An owner whose votes are refused after a
// change of sign-in cannot relax the rule that refuses them.
func (s *Server) checkVoteRules(ctx context.Context, c *Caller, hold *int, signed *bool) error {
	if hold == nil && signed == nil {
		return nil
	}
	if err := checkOwner(c); err != nil {
		return err
	}
	settings, err := s.Orgs.CurrentSettings(ctx, c.Who.Tenant)
	if err != nil {
		return err
	}
	looser := hold != nil && *hold < settings.VoteHoldHours || signed != nil && !*signed && settings.SignedVotes
	if !looser {
		return nil
	}
	return s.Approvals.CheckHold(ctx, c.Who.Tenant, c.Who.Account)
}

func (s *Server) getOrganization(r *request) (answer, error) {
	return okAnswer(s.ShowOrganization(r.Context(), r.Caller))
}

// ShowOrganization returns the settings of the organization.
func (s *Server) ShowOrganization(ctx context.Context, c *Caller) (wire.Organization, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.Organization{}, err
	}
	settings, err := s.Orgs.CurrentSettings(ctx, c.Who.Tenant)
	if err != nil {
		return wire.Organization{}, err
	}
	view, err := s.describeSettings(ctx, settings)
	view.Permissions = c.permissions()
	return view, err
}

// OrganizationPatch is a change of the settings that the organization controls. Nil members stay as they are. The
// operator controls plan, limits and activity.
type OrganizationPatch struct {
	Disclosure *id.Disclosure       `json:"disclosure"`
	Name       *string              `json:"name"`
	SelfReview *bool                `json:"self_review"`
	TwoPerson  *bool                `json:"two_person_policy"`
	Published  *bool                `json:"publish_policies"`
	SignIn     *wire.RequiredSignIn `json:"sign_in"`
	Retention  *int                 `json:"retention_days"`
	LegalHold  *bool                `json:"legal_hold"`
	VoteHold   *int                 `json:"vote_hold_hours"`
	Signed     *string              `json:"signed_votes"`
	InMail     *bool                `json:"columns_in_mail"`
}

func (s *Server) patchOrganization(r *request) (answer, error) {
	var patch OrganizationPatch
	if err := r.DecodeBody(&patch); err != nil {
		return answer{}, err
	}
	return okAnswer(s.ChangeOrganization(r.Context(), r.Caller, patch))
}

// ChangeOrganization changes the settings of the organization and returns them. Some only an owner may change.
func (s *Server) ChangeOrganization(
	ctx context.Context, c *Caller, wanted OrganizationPatch,
) (wire.Organization, error) {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return wire.Organization{}, err
	}
	if wanted.TwoPerson != nil && !c.Who.Role.May(account.Own) {
		return wire.Organization{}, fault.New(fault.Forbidden, "Your role does not allow this")
	}
	if wanted.Retention != nil || wanted.LegalHold != nil {
		if err := checkOwner(c); err != nil {
			return wire.Organization{}, err
		}
	}
	signed, err := parseSignedVotes(wanted.Signed)
	if err == nil {
		err = s.checkVoteRules(ctx, c, wanted.VoteHold, signed)
	}
	if err != nil {
		return wire.Organization{}, err
	}
	required, err := s.checkSignIn(c, wanted.SignIn)
	if err != nil {
		return wire.Organization{}, err
	}
	patch := org.Patch{Disclosure: wanted.Disclosure, Name: wanted.Name, SelfReview: wanted.SelfReview,
		TwoPerson: wanted.TwoPerson, Published: wanted.Published, SignIn: required, NoneOpen: s.Approvals.NoneOpen,
		RetentionDays: wanted.Retention, LegalHold: wanted.LegalHold, VoteHoldHours: wanted.VoteHold,
		SignedVotes: signed, ColumnsInMail: wanted.InMail, BeginRetention: s.Erasures.BeginRetention}
	settings, err := s.Orgs.Change(ctx, c.Who.Tenant, string(c.Who.Account), patch)
	if err != nil {
		return wire.Organization{}, err
	}
	return s.describeSettings(ctx, settings)
}

// checkOwner refuses a caller who is not an owner with a recently proved factor.
func checkOwner(c *Caller) error {
	switch {
	case c.ByToken:
		return fault.New(fault.Forbidden, "Tokens can't do this: sign in")
	case !c.Who.Role.May(account.Own):
		return fault.New(fault.Forbidden, "Your role does not allow this")
	}
	return c.Who.CheckFactor()
}

// checkSignIn returns the sign-in method that an owner wants to require, or nil for no change. It refuses a method by
// which the owner is not signed in, because the owner could not undo the change.
func (s *Server) checkSignIn(c *Caller, requested *wire.RequiredSignIn) (*string, error) {
	if requested == nil {
		return nil, nil
	}
	if !c.Who.Role.May(account.Own) {
		return nil, fault.New(fault.Forbidden, "Your role does not allow this")
	}
	if err := c.Who.CheckFactor(); err != nil {
		return nil, err
	}
	required := string(requested.Require)
	if err := s.Orgs.CheckSignIn(required); err != nil {
		return nil, err
	}
	if account.Method(required).Allow(c.Who.SignIn) != nil {
		return nil, &fault.Error{Kind: fault.Conflict, Code: "sign_in_required",
			Message: "Sign in that way first: your own session could no longer act"}
	}
	return &required, nil
}
