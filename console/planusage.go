package console

import (
	"net/http"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

type planUsageView struct {
	Plan            string     `json:"plan"`
	EventsThisMonth uint64     `json:"events_this_month"`
	EventsPerMonth  *uint64    `json:"events_per_month"` // null: no cap
	Month           string     `json:"month"`            // YYYY-MM, UTC
	ResetsAt        id.Instant `json:"resets_at"`
	Limits          limitsView `json:"limits"`
}

// limitsView has the use of each bound of the organization.
type limitsView struct {
	EventsPerMonth      usedView `json:"events_per_month"`
	Agents              usedView `json:"agents"`
	KeysPerAgent        usedView `json:"keys_per_agent"`
	ActiveKeysPerAgent  usedView `json:"active_keys_per_agent"`
	IngestKeys          usedView `json:"ingest_keys"`
	Policies            usedView `json:"policies"`
	PolicyVersions      usedView `json:"policy_versions"`
	StatementsPerMinute usedView `json:"statements_per_minute"`
}

// usedView is the use of one bound.
type usedView struct {
	Used  *uint64 `json:"used"`  // null for a bound of each agent, or of each policy
	Limit *uint64 `json:"limit"` // null: no bound
}

func limitInUse(n, limit uint64) usedView { return usedView{&n, orNull(limit)} }

// limitForEach is a bound of each thing of a kind.
func limitForEach(limit uint64) usedView { return usedView{nil, orNull(limit)} }

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

func describePlanUsage(u org.Usage, agents, policies uint64) planUsageView {
	return planUsageView{
		Plan: u.Plan, EventsThisMonth: u.EventsThisMonth, EventsPerMonth: orNull(u.EventsPerMonth), Month: u.Month,
		ResetsAt: u.ResetsAt,
		Limits: limitsView{
			EventsPerMonth: limitInUse(u.EventsThisMonth, u.EventsPerMonth),
			Agents:         limitInUse(agents, u.Limits.Agents),
			KeysPerAgent:   limitForEach(agent.MaxKeys), ActiveKeysPerAgent: limitForEach(agent.MaxActiveKeys),
			IngestKeys: limitInUse(u.IngestKeys.Open(), u.Limits.IngestKeys),
			Policies:   limitInUse(policies, u.Limits.Policies), PolicyVersions: limitForEach(u.Limits.PolicyVersions),
			StatementsPerMinute: limitInUse(u.Paced, u.Limits.StatementsPerMinute),
		},
	}
}
