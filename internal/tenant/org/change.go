package org

import (
	"context"
	"errors"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// MaxRetentionDays is the longest retention.
const MaxRetentionDays = 36_500

// MaxVoteHoldHours is the longest time for which votes are rejected after a change of sign-in: 90 days.
const MaxVoteHoldHours = 2160

// Patch is a change of settings. Nil members remain unchanged.
type Patch struct {
	Name           *string
	Plan           *string
	Active         *bool
	EventsPerMonth **uint64          // a pointer to nil removes the organization's own limit
	Limits         map[Limit]*uint64 // a nil value removes the own limit; names from LimitNames
	Disclosure     *id.Disclosure
	SelfReview     *bool
	TwoPerson      *bool
	Published      *bool
	SignIn         *string // "" removes the requirement
	RetentionDays  *int    // 0 keeps envelopes permanently
	LegalHold      *bool
	VoteHoldHours  *int
	SignedVotes    *bool
	ColumnsInMail  *bool

	// NoneOpen is called before self-review is enabled, and is required for that. It returns an error while approvals
	// are open, and otherwise changes that make the append fail if an approval is requested in the meantime.
	NoneOpen func(ctx context.Context, t id.Tenant) ([]storage.Change, error)

	// BeginRetention is called before RetentionDays is set to a number other than 0, and is required for that. It
	// returns the changes that schedule the erasure of old envelopes.
	BeginRetention func(ctx context.Context, t id.Tenant) ([]storage.Change, error)

	Witnessing *Witnessing // the zero value selects the service's witnesses

	Columns  *[]string // the paths of all columns
	Backfill bool      // with Columns: they contain the values of all earlier events too
}

// checkPatch returns fault.Invalid for an invalid value.
func (o *Orgs) checkPatch(p Patch) error {
	if p.Name != nil {
		if err := checkName(*p.Name); err != nil {
			return err
		}
	}
	if p.Plan != nil {
		if err := o.checkPlan(*p.Plan); err != nil {
			return err
		}
	}
	if p.EventsPerMonth != nil && *p.EventsPerMonth != nil {
		if err := checkLimit(**p.EventsPerMonth); err != nil {
			return err
		}
	}
	for _, name := range LimitNames() {
		if err := name.checkValue(p.Limits[name]); err != nil {
			return err
		}
	}
	if p.SignIn != nil {
		if err := o.CheckSignIn(*p.SignIn); err != nil {
			return err
		}
	}
	if p.RetentionDays != nil && (*p.RetentionDays < 0 || *p.RetentionDays > MaxRetentionDays) {
		return fault.New(fault.Invalid, "retention_days must be a whole number from 0 to 36500")
	}
	if p.VoteHoldHours != nil && (*p.VoteHoldHours < 0 || *p.VoteHoldHours > MaxVoteHoldHours) {
		return fault.New(fault.Invalid, "vote_hold_hours must be a whole number from 0 to 2160")
	}
	if p.Columns != nil {
		if err := checkColumns(*p.Columns); err != nil {
			return err
		}
	}
	if p.Witnessing != nil {
		return o.checkWitnessing(*p.Witnessing)
	}
	return nil
}

// applyTo returns the settings after p, and the names of the settings that change.
func (p Patch) applyTo(s settingsRecord) (after settingsRecord, names []string) {
	after = s
	setIfGiven(&names, "active", &after.Active, p.Active)
	setIfGiven(&names, "columns_in_mail", &after.ColumnsInMail, p.ColumnsInMail)
	setIfGiven(&names, "disclosure", &after.Disclosure, p.Disclosure)
	if p.EventsPerMonth != nil && !equalPointers(s.EventsPerMonth, *p.EventsPerMonth) {
		after.EventsPerMonth, names = *p.EventsPerMonth, append(names, "events_per_month")
	}
	var limits []string
	after.Limits, limits = applyLimits(s.Limits, p.Limits)
	names = append(names, limits...)
	setIfGiven(&names, "legal_hold", &after.LegalHold, p.LegalHold)
	setIfGiven(&names, "name", &after.Name, p.Name)
	setIfGiven(&names, "plan", &after.Plan, p.Plan)
	setIfGiven(&names, "publish_policies", &after.Published, p.Published)
	setIfGiven(&names, "retention_days", &after.RetentionDays, p.RetentionDays)
	setIfGiven(&names, "self_review", &after.SelfReview, p.SelfReview)
	setIfGiven(&names, "sign_in", &after.SignIn, p.SignIn)
	setIfGiven(&names, "signed_votes", &after.SignedVotes, p.SignedVotes)
	setIfGiven(&names, "two_person_policy", &after.TwoPerson, p.TwoPerson)
	setIfGiven(&names, "vote_hold_hours", &after.VoteHoldHours, p.VoteHoldHours)
	setIfGiven(&names, "witnesses", &after.Witnessing, p.Witnessing)
	return after, names
}

func setIfGiven[T comparable](names *[]string, name string, value, to *T) {
	if to != nil && *value != *to {
		*value = *to
		*names = append(*names, name)
	}
}

func equalPointers(a, b *uint64) bool { return a == b || a != nil && b != nil && *a == *b }

// Change changes settings and states the change (ledger_settings_changed). It does not state a setting that already
// has the requested value. It returns fault.NotFound for an unknown tenant, the error of Patch.NoneOpen, and
// fault.RateLimited if members change settings too fast. Changes by the operator are not limited.
func (o *Orgs) Change(ctx context.Context, t id.Tenant, principal string, p Patch) (*Settings, error) {
	if err := o.checkPatch(p); err != nil {
		return nil, err
	}
	var changed *Settings
	_, err := o.events.Append(ctx, t, principal, func(ctx context.Context, s *log.State) (sysevent.Change, error) {
		stored, version, err := o.readRecord(ctx, t)
		if err != nil {
			return sysevent.Change{}, errUnreadable("change settings", err)
		}
		after, names := p.applyTo(stored.settingsRecord)
		if p.Columns != nil {
			after.Columns = nameColumns(s, after.Columns, *p.Columns, p.Backfill)
			if !slices.Equal(after.Columns, stored.Columns) {
				names = append(names, columnsSetting)
				slices.Sort(names)
			}
		}
		before := stored.settingsRecord
		stored.settingsRecord = after
		changed = makeSettings(s.Identity(), stored)
		if len(names) == 0 {
			return sysevent.Change{}, nil
		}
		guards, err := p.changesGuarded(ctx, t, before, after)
		if err != nil {
			return sysevent.Change{}, err
		}
		paced, err := o.countStatement(ctx, t, principal)
		if err != nil {
			return sysevent.Change{}, err
		}
		act, err := settingsChange(stored, version, before, names)
		act.Changes = append(append(act.Changes, guards...), paced...)
		return act, err
	})
	if err != nil {
		return nil, err
	}
	return changed, nil
}

// changesGuarded returns the changes that must be written with the settings: one that makes the append fail if an
// approval is requested under the stricter rule while self-review is enabled, and the start of a retention.
func (p Patch) changesGuarded(
	ctx context.Context, t id.Tenant, before, after settingsRecord,
) (changes []storage.Change, err error) {
	if !before.SelfReview && after.SelfReview {
		if p.NoneOpen == nil {
			return nil, errors.New("change settings: self-review cannot be enabled without NoneOpen")
		}
		if changes, err = p.NoneOpen(ctx, t); err != nil {
			return nil, err
		}
	}
	if after.RetentionDays == 0 || after.RetentionDays == before.RetentionDays {
		return changes, nil
	}
	if p.BeginRetention == nil {
		return nil, errors.New("change settings: a retention cannot be set without BeginRetention")
	}
	begin, err := p.BeginRetention(ctx, t)
	return append(changes, begin...), err
}

// settingsChange returns the statement of a change, with digests of the settings before and after it, and the record
// to write.
func settingsChange(stored orgRecord, version uint64, before settingsRecord, names []string) (sysevent.Change, error) {
	beforeDigest, err := before.digestSettings()
	if err != nil {
		return sysevent.Change{}, err
	}
	afterDigest, err := stored.digestSettings()
	if err != nil {
		return sysevent.Change{}, err
	}
	value, err := json.Marshal(stored)
	if err != nil {
		return sysevent.Change{}, err
	}
	payload := map[string]any{"names": names, "before_digest": beforeDigest, "after_digest": afterDigest}
	if slices.Contains(names, columnsSetting) {
		stateColumns(payload, before.Columns, stored.Columns)
	}
	return sysevent.Change{
		Statements: []sysevent.Statement{{Kind: sysevent.SettingsChanged, Payload: payload}},
		Changes:    []storage.Change{{Kind: kindOrg, Value: value, If: version}},
	}, nil
}
