package simulate

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/policy"
)

// EvaluateTrial explains what a policy of an organization says to one input, at the time
// of the trial or else now.
//
// Errors are those of log.State.Trusted, because a policy is tried that may have been
// replaced; fault.Overloaded while others are at it.
func (r *Simulator) EvaluateTrial(ctx context.Context, t id.Tenant, p policy.Policy, trial *policy.Trial) (policy.Explanation, error) {
	if err := r.gate.Enter(t, 1); err != nil {
		return policy.Explanation{}, err
	}
	defer r.gate.Leave(t, 1)
	if _, err := r.trustedState(ctx, t); err != nil {
		return policy.Explanation{}, err
	}
	party := admission.Party{Tenant: t}
	if err := r.turns.Take(ctx, party); err != nil {
		return policy.Explanation{}, err
	}
	defer r.turns.Give(party)
	if trial.Input.Now == 0 {
		trial.Input.Now = id.InstantOf(r.clock())
	}
	return policy.Explain(ctx, p, trial.Input)
}
