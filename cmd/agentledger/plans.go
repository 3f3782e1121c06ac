package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/quota"
)

// planCatalogue returns the catalogue of the settings: the events of each plan, and the default limits except where the
// settings name others.
func planCatalogue(c config.Limits) ([]org.Plan, error) {
	var all []org.Plan
	for _, name := range slices.Sorted(maps.Keys(c.Plans)) {
		all = append(all, org.Plan{Name: name, EventsPerMonth: c.Plans[name], Limits: shippedLimits(name)})
	}
	for _, setting := range slices.Sorted(maps.Keys(c.PlanLimits)) {
		plan, limit, _ := strings.Cut(setting, ".")
		i := slices.IndexFunc(all, func(p org.Plan) bool { return p.Name == plan })
		if i < 0 {
			return nil, fmt.Errorf("--plan-limits: there is no plan %q", plan)
		}
		place := org.Limit(limit).Of(&all[i].Limits)
		if place == nil {
			return nil, fmt.Errorf("--plan-limits: there is no limit %q", limit)
		}
		*place = c.PlanLimits[setting]
	}
	return all, nil
}

// shippedLimits returns the default limits of a plan.
func shippedLimits(plan string) quota.Limits {
	for _, p := range org.DefaultPlans() {
		if p.Name == plan {
			return p.Limits
		}
	}
	return org.DefaultLimits()
}
