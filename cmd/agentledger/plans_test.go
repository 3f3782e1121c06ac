package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/quota"
)

func TestPlans(t *testing.T) {
	events := map[string]uint64{"free": 10, "gold": 0, "enterprise": 0}
	free := org.DefaultPlans()[0].Limits
	free.Agents = 50
	gold := org.DefaultLimits()
	gold.StatementsPerMinute, gold.Policies = 7, 0
	got, err := planCatalogue(config.Limits{Plans: events, PlanLimits: map[string]uint64{"free.agents": 50, "gold.statements_per_minute": 7, "gold.policies": 0}})
	want := []org.Plan{
		{Name: "enterprise", Limits: org.DefaultLimits()}, {Name: "free", EventsPerMonth: 10, Limits: free}, {Name: "gold", Limits: gold},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for name, says := range map[string]string{"silver.agents": `there is no plan "silver"`, "free.seats": `there is no limit "seats"`, "agents": `there is no plan "agents"`} {
		if _, err := planCatalogue(config.Limits{Plans: events, PlanLimits: map[string]uint64{name: 1}}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %s", name, err, says)
		}
	}
}

// The settings can set every limit that an organization can have, and every shipped plan has a value for it: nothing is
// unlimited by default.
func TestShippedPlansBoundEverything(t *testing.T) {
	for _, plan := range org.DefaultPlans() {
		for _, name := range org.LimitNames() {
			var one quota.Limits
			place := name.Of(&one)
			if place == nil {
				t.Fatalf("%s is not in the settings", name)
			}
			limits := plan.Limits
			if *name.Of(&limits) == 0 {
				t.Errorf("plan %s has no limit of %s", plan.Name, name)
			}
		}
	}
}
