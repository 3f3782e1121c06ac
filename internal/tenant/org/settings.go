package org

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Settings are the names and settings of an organization. They are immutable.
type Settings struct {
	Tenant         id.Tenant
	ID             id.Organization
	Slug           id.Slug
	Name           string
	Origin         id.Origin
	Plan           string
	Active         bool             // if false, ingest and writes of the console are rejected with 403; public routes remain
	EventsPerMonth *uint64          // the organization's own limit; if nil, the plan's
	Own            map[Limit]uint64 // other own limits, which override the plan's
	Disclosure     id.Disclosure
	SelfReview     bool   // the creator of the ingest key or agent may vote on its approvals
	TwoPerson      bool   // a version of a policy must be activated by another person than its last editor
	Published      bool   // current and former active policies are public, by digest
	SignIn         string // required method: passkey or oidc:NAME; "" means any
	RetentionDays  int    // older envelopes are erased; 0 means never
	LegalHold      bool   // nothing is erased
	VoteHoldHours  int    // how long votes are rejected after an account.SignInChange; 0 means not at all
	SignedVotes    bool   // each approving vote must be signed with a passkey
	ColumnsInMail  bool   // mails to approvers contain the values of Columns
	Columns        []Column
	Witnessing     Witnessing
	CreatedAt      id.Instant
}

// kindOrg is the record of an organization in its own partition, under key "". The handle of a call that lost its
// claims gets a void record, so that it can never become an organization.
const kindOrg storage.Kind = "org"

type orgRecord struct {
	OrganizationID id.Organization `json:"organization_id"`
	Slug           id.Slug         `json:"slug"`
	settingsRecord `json:",inline"`
}

// settingsRecord is the part that can change.
type settingsRecord struct {
	Name           string        `json:"name"`
	Plan           string        `json:"plan"`
	Active         bool          `json:"active"`
	EventsPerMonth *uint64       `json:"events_per_month"`
	Disclosure     id.Disclosure `json:"disclosure"`
	SelfReview     bool          `json:"self_review"`
	TwoPerson      bool          `json:"two_person_policy,omitzero"`
	Published      bool          `json:"publish_policies,omitzero"`
	SignIn         string        `json:"sign_in,omitzero"`
	RetentionDays  int           `json:"retention_days,omitzero"`
	LegalHold      bool          `json:"legal_hold,omitzero"`
	Witnessing     Witnessing    `json:"witnesses,omitzero"`
	VoteHoldHours  int           `json:"vote_hold_hours,omitzero"`
	SignedVotes    bool          `json:"signed_votes,omitzero"`
	ColumnsInMail  bool          `json:"columns_in_mail,omitzero"`

	Limits map[Limit]uint64 `json:"limits,omitempty"` // own limits, except the one for events

	Columns []columnRecord `json:"columns,omitempty"`
}

// voidValue is the record of a void handle.
const voidValue = `{"void":true}`

// digestSettings returns the SHA-256 of the JCS form of the settings.
func (s settingsRecord) digestSettings() (id.Hash, error) {
	canonical, err := jcs.Marshal(s)
	if err != nil {
		return id.Hash{}, fmt.Errorf("digest of settings: %w", err)
	}
	return sha256.Sum256(canonical), nil
}

// readRecord reads the organization of a handle. It returns an error that wraps storage.ErrNotFound if there is none.
func (o *Orgs) readRecord(ctx context.Context, t id.Tenant) (orgRecord, uint64, error) {
	r, err := o.records.Get(ctx, t, kindOrg, "")
	if err != nil {
		return orgRecord{}, 0, err
	}
	if string(r.Value) == voidValue {
		return orgRecord{}, r.Version, fmt.Errorf("handle is void: %w", storage.ErrNotFound)
	}
	var stored orgRecord
	if err := json.Unmarshal(r.Value, &stored); err != nil {
		return orgRecord{}, r.Version, fmt.Errorf("organization's record: %w: %w", storage.ErrCorrupt, err)
	}
	return stored, r.Version, nil
}

// Settings returns the settings for a ledger state: those of its config version or newer ones. It returns
// fault.Unavailable if they can't be read, or if the plan is not in the catalogue and the limit is therefore unknown.
func (o *Orgs) Settings(ctx context.Context, s *log.State) (*Settings, error) {
	identity, version := s.Identity(), s.ConfigVersion()
	if known, found := o.settings.Lookup(identity.Tenant, version); found {
		return known, nil
	}
	known, err := o.settings.GetAt(ctx, identity.Tenant, version, func(ctx context.Context) (*Settings, error) {
		return o.readSettings(ctx, identity)
	})
	if err != nil {
		return nil, errUnreadable("read settings", err)
	}
	return known, nil
}

func (o *Orgs) readSettings(ctx context.Context, identity *log.Identity) (*Settings, error) {
	stored, _, err := o.readRecord(ctx, identity.Tenant)
	if err != nil {
		return nil, err
	}
	if _, ok := o.plans[stored.Plan]; !ok {
		return nil, errors.New("plan is not in the catalogue: " + stored.Plan)
	}
	return makeSettings(identity, stored), nil
}

// CurrentSettings returns the current settings of an organization. It returns the errors of Settings.
func (o *Orgs) CurrentSettings(ctx context.Context, t id.Tenant) (*Settings, error) {
	s, err := o.ledgers.State(ctx, t)
	if err != nil {
		return nil, err
	}
	return o.Settings(ctx, s)
}

// Fault returns the known fault of an organization's ledger, or log.Healthy.
func (o *Orgs) Fault(ctx context.Context, t id.Tenant) (log.Level, error) {
	s, err := o.ledgers.State(ctx, t)
	if err != nil {
		return log.Healthy, err
	}
	return s.Fault().Level, nil
}

func makeSettings(identity *log.Identity, r orgRecord) *Settings {
	return &Settings{
		Tenant: identity.Tenant, ID: identity.Organization, Origin: identity.Origin, CreatedAt: identity.CreatedAt,
		Slug: r.Slug, Name: r.Name, Plan: r.Plan, Active: r.Active,
		EventsPerMonth: r.EventsPerMonth, Own: r.Limits, Disclosure: r.Disclosure, SelfReview: r.SelfReview,
		TwoPerson: r.TwoPerson, Published: r.Published, SignIn: r.SignIn, Witnessing: r.Witnessing,
		RetentionDays: r.RetentionDays, LegalHold: r.LegalHold,
		VoteHoldHours: r.VoteHoldHours, SignedVotes: r.SignedVotes, ColumnsInMail: r.ColumnsInMail, Columns: columnsOf(identity, r.Columns),
	}
}

// Disclosure returns the disclosure of new events. It does not require the plan: an organization whose plan was
// removed from the catalogue can be moved to another plan, which is stated.
func (o *Orgs) Disclosure(ctx context.Context, s *log.State) (id.Disclosure, error) {
	known, err := o.settingsWithoutPlan(ctx, s)
	if err != nil {
		return 0, err
	}
	return known.Disclosure, nil
}

// TwoPersonPolicy reports whether two people must decide on the policies of the organization of s. Like Disclosure it
// does not require the plan.
func (o *Orgs) TwoPersonPolicy(ctx context.Context, s *log.State) (bool, error) {
	known, err := o.settingsWithoutPlan(ctx, s)
	return err == nil && known.TwoPerson, err
}

// settingsWithoutPlan returns the settings for a ledger state, even if their plan is not in the catalogue.
func (o *Orgs) settingsWithoutPlan(ctx context.Context, s *log.State) (*Settings, error) {
	t := s.Identity().Tenant
	if known, found := o.settings.Lookup(t, s.ConfigVersion()); found {
		return known, nil
	}
	stored, _, err := o.readRecord(ctx, t)
	if err != nil {
		return nil, errUnreadable("read settings", err)
	}
	return makeSettings(s.Identity(), stored), nil
}

// PublishesPolicies reports whether the policies of the organization of s are public. Like Disclosure it does not
// require the plan.
func (o *Orgs) PublishesPolicies(ctx context.Context, s *log.State) (bool, error) {
	known, err := o.settingsWithoutPlan(ctx, s)
	return err == nil && known.Published, err
}

// Keeping is how long the envelopes of an organization are kept.
type Keeping struct {
	Days int  // 0 means permanently
	Hold bool // nothing is erased
}

// Keeping returns how long envelopes are kept. Like Disclosure it does not require the plan. The result is valid for
// every append under the config version of s.
func (o *Orgs) Keeping(ctx context.Context, s *log.State) (Keeping, error) {
	known, err := o.settingsWithoutPlan(ctx, s)
	if err != nil {
		return Keeping{}, err
	}
	return Keeping{Days: known.RetentionDays, Hold: known.LegalHold}, nil
}

// Active reports whether the organization may change anything. Like Disclosure it does not require the plan, because
// an organization without a known plan is not inactive.
func (o *Orgs) Active(ctx context.Context, t id.Tenant) (bool, error) {
	s, err := o.ledgers.State(ctx, t)
	if err != nil {
		return false, err
	}
	known, err := o.settingsWithoutPlan(ctx, s)
	return err == nil && known.Active, err
}
