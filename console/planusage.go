package console

import (
	"net/http"

	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/wire"
)

func limitInUse(n, limit uint64) wire.PlanLimit {
	return wire.PlanLimit{Used: &n, Limit: wire.Number(limit)}
}

// limitForEach is a bound of each thing of a kind.
func limitForEach(limit uint64) wire.PlanLimit { return wire.PlanLimit{Limit: wire.Number(limit)} }

func (s *Server) answerPlanUsage(r *request) (answer, error) {
	u, err := s.Orgs.PlanUsage(r.Context(), r.Who.Tenant)
	if err != nil {
		return answer{}, err
	}
	agents, err := s.Agents.Count(r.Context(), r.Who.Tenant)
	if err != nil {
		return answer{}, err
	}
	policies, err := s.Policies.Count(r.Context(), r.Who.Tenant)
	return jsonAnswer(http.StatusOK, describePlanUsage(u, agents, policies)), err
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
