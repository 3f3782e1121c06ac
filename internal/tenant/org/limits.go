package org

import (
	"context"
	"fmt"
	"maps"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/quota"
)

// Limit is the name of a limit of a plan, except its events per month, that an organization may override.
type Limit string

const (
	AgentsLimit         Limit = "agents"
	IngestKeysLimit     Limit = "ingest_keys"
	PoliciesLimit       Limit = "policies"
	PolicyVersionsLimit Limit = "policy_versions"
	StatementsPerMinute Limit = "statements_per_minute"
)

// LimitNames returns all limits, in the order in which they are displayed.
func LimitNames() []Limit {
	return []Limit{AgentsLimit, IngestKeysLimit, PoliciesLimit, PolicyVersionsLimit, StatementsPerMinute}
}

// mostAllowed returns the maximum value of a limit.
func (l Limit) mostAllowed() uint64 {
	if l == StatementsPerMinute {
		return quota.MaxStatementsPerMinute
	}
	return maxThings
}

// checkValue checks a value of an organization's own limit. nil means the plan's value.
func (l Limit) checkValue(n *uint64) error {
	if n != nil && (*n < 1 || *n > l.mostAllowed()) {
		return fault.New(fault.Invalid, fmt.Sprintf("%s must be 1 to %d, or null for the plan's", l, l.mostAllowed()))
	}
	return nil
}

// Of returns a pointer to a limit in all, or nil for an unknown name.
func (l Limit) Of(all *quota.Limits) *uint64 {
	switch l {
	case AgentsLimit:
		return &all.Agents
	case IngestKeysLimit:
		return &all.IngestKeys
	case PoliciesLimit:
		return &all.Policies
	case PolicyVersionsLimit:
		return &all.PolicyVersions
	case StatementsPerMinute:
		return &all.StatementsPerMinute
	}
	return nil
}

// applyLimits returns the own limits after a patch, and the names of those that change.
func applyLimits(own map[Limit]uint64, patch map[Limit]*uint64) (after map[Limit]uint64, names []string) {
	after = maps.Clone(own)
	for _, name := range LimitNames() {
		to, given := patch[name]
		is, has := own[name]
		switch {
		case !given || to == nil && !has || to != nil && has && *to == is:
			continue
		case to == nil:
			delete(after, name)
		case after == nil:
			after = map[Limit]uint64{name: *to}
		default:
			after[name] = *to
		}
		names = append(names, string(name))
	}
	return after, names
}

// EventsPerMonth returns how many counted events the organization may add in a month: its own limit, or else its
// plan's. 0 means no limit.
func (o *Orgs) EventsPerMonth(s *Settings) uint64 {
	if s.EventsPerMonth != nil {
		return *s.EventsPerMonth
	}
	return o.plans[s.Plan].EventsPerMonth
}

// readLimits returns the limits of the organization's plan, overridden by its own.
func (o *Orgs) readLimits(s *Settings) quota.Limits {
	all := o.plans[s.Plan].Limits
	for name, own := range s.Own {
		if place := name.Of(&all); place != nil {
			*place = own
		}
	}
	return all
}

// Limits returns the current limits of an organization. It returns the errors of Settings.
func (o *Orgs) Limits(ctx context.Context, t id.Tenant) (quota.Limits, error) {
	s, err := o.CurrentSettings(ctx, t)
	if err != nil {
		return quota.Limits{}, err
	}
	return o.readLimits(s), nil
}
