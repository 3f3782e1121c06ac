package org

import (
	"context"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/log"
)

// Plan is a plan of the catalogue.
type Plan struct {
	Name           string // [a-z][a-z0-9_-]{0,31}
	EventsPerMonth uint64 // counted events per calendar month, UTC; 0 means no limit
	Limits         quota.Limits
}

// DefaultPlan is the plan of an organization that is created without one.
const DefaultPlan = "enterprise"

// DefaultPlans returns the catalogue of a service without configured plans.
func DefaultPlans() []Plan {
	return []Plan{
		{"free", 10_000, quota.Limits{
			Agents:              20,
			IngestKeys:          20,
			Policies:            20,
			PolicyVersions:      100,
			StatementsPerMinute: 60,
		}},
		{"team", 100_000, quota.Limits{
			Agents:              1_000,
			IngestKeys:          200,
			Policies:            100,
			PolicyVersions:      1_000,
			StatementsPerMinute: 600,
		}},
		{DefaultPlan, 0, DefaultLimits()},
	}
}

// DefaultLimits returns the limits of a plan without configured limits.
func DefaultLimits() quota.Limits {
	return quota.Limits{
		Agents:              100_000,
		IngestKeys:          10_000,
		Policies:            1_000,
		PolicyVersions:      10_000,
		StatementsPerMinute: 6_000,
	}
}

// indexPlans validates plans and returns them by name.
func indexPlans(plans []Plan) (map[string]Plan, error) {
	byName := make(map[string]Plan, len(plans))
	for _, p := range plans {
		if !isValidPlan(p.Name) {
			return nil, fmt.Errorf("plans: %q is not a valid name", p.Name)
		}
		if _, twice := byName[p.Name]; twice {
			return nil, fmt.Errorf("plans: %q appears twice", p.Name)
		}
		if p.Limits.StatementsPerMinute > quota.MaxStatementsPerMinute {
			return nil, fmt.Errorf("plans: statements_per_minute of %q is more than %d", p.Name,
				quota.MaxStatementsPerMinute)
		}
		byName[p.Name] = p
	}
	if _, ok := byName[DefaultPlan]; !ok {
		return nil, fmt.Errorf("plans: %q is missing", DefaultPlan)
	}
	return byName, nil
}

func isValidPlan(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (i == 0 || (c < '0' || c > '9') && c != '_' && c != '-') {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= 32
}

// checkPlan returns fault.Invalid for a plan that is not in the catalogue.
func (o *Orgs) checkPlan(name string) error {
	if _, ok := o.plans[name]; !ok {
		return fault.New(fault.Invalid, "plan is not known")
	}
	return nil
}

// Usage is how much of its plan an organization has used.
type Usage struct {
	Plan            string
	EventsThisMonth uint64
	EventsPerMonth  uint64 // 0 means no limit
	Month           string // YYYY-MM, UTC
	ResetsAt        id.Instant

	Limits     quota.Limits
	IngestKeys quota.Count
	Paced      uint64 // statements that count now
}

// PlanUsage returns the usage in the current month, which is the month of the clock or, if later, of the latest event.
func (o *Orgs) PlanUsage(ctx context.Context, t id.Tenant) (Usage, error) {
	s, err := o.ledgers.State(ctx, t)
	if err != nil {
		return Usage{}, err
	}
	u, err := o.usageAt(ctx, s)
	if err != nil {
		return Usage{}, err
	}
	u.Paced, err = o.quota.CountedStatements(ctx, t)
	return u, err
}

// usageAt is like PlanUsage for a state of the ledger, without Paced.
func (o *Orgs) usageAt(ctx context.Context, s *log.State) (Usage, error) {
	settings, err := o.Settings(ctx, s)
	if err != nil {
		return Usage{}, err
	}
	now := max(o.currentTime(), s.LastReceived())
	year, month, _ := now.Time().Date()
	u := Usage{
		Plan:            settings.Plan,
		EventsThisMonth: s.Used(now),
		EventsPerMonth:  o.EventsPerMonth(settings),
		Month:           now.Time().Format("2006-01"),
		ResetsAt:        id.InstantOf(time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC)),
		Limits:          o.readLimits(settings),
	}
	u.IngestKeys, err = o.quota.Count(ctx, s.Identity().Tenant, ingestKeyResource())
	return u, err
}

// MonthlyEvents returns the number of counted events in the current month, YYYY-MM, and their limit. 0 means no limit.
func (o *Orgs) MonthlyEvents(ctx context.Context, t id.Tenant) (used, limit uint64, month string, err error) {
	u, err := o.PlanUsage(ctx, t)
	return u.EventsThisMonth, u.EventsPerMonth, u.Month, err
}
