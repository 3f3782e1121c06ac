package console

import (
	"context"

	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/wire"
)

func limitInUse(n, limit uint64) wire.PlanLimit {
	return wire.PlanLimit{Used: &n, Limit: wire.Number(limit)}
}

// limitForEach is a limit that applies to each object of a kind.
func limitForEach(limit uint64) wire.PlanLimit { return wire.PlanLimit{Limit: wire.Number(limit)} }

func (s *Server) answerPlanUsage(r *request) (answer, error) {
	return okAnswer(s.ShowPlanUsage(r.Context(), r.Caller))
}

// ShowPlanUsage returns how much of its plan the organization uses.
func (s *Server) ShowPlanUsage(ctx context.Context, c *Caller) (wire.PlanUsage, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.PlanUsage{}, err
	}
	u, err := s.Orgs.PlanUsage(ctx, c.Who.Tenant)
	if err != nil {
		return wire.PlanUsage{}, err
	}
	agents, err := s.Agents.Count(ctx, c.Who.Tenant)
	if err != nil {
		return wire.PlanUsage{}, err
	}
	policies, err := s.Policies.Count(ctx, c.Who.Tenant)
	return describePlanUsage(u, agents, policies), err
}

func describePlanUsage(u org.Usage, agents, policies uint64) wire.PlanUsage {
	return wire.PlanUsage{
		Plan: u.Plan, EventsThisMonth: u.EventsThisMonth, EventsPerMonth: wire.Number(u.EventsPerMonth), Month: u.Month,
		ResetsAt: u.ResetsAt,
		Limits: wire.PlanLimits{
			EventsPerMonth: limitInUse(u.EventsThisMonth, u.EventsPerMonth),
			Agents:         limitInUse(agents, u.Limits.Agents),
			KeysPerAgent:   limitForEach(agent.MaxKeys), ActiveKeysPerAgent: limitForEach(agent.MaxActiveKeys),
			IngestKeys: limitInUse(u.IngestKeys.Open(), u.Limits.IngestKeys),
			Policies:   limitInUse(policies, u.Limits.Policies), PolicyVersions: limitForEach(u.Limits.PolicyVersions),
			StatementsPerMinute: limitInUse(u.Paced, u.Limits.StatementsPerMinute),
		},
	}
}
