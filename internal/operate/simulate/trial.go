package simulate

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/policy"
)

// EvaluateTrial explains what a policy of an organization decides for one input, at the time of the trial or, if it
// has none, now.
//
// It returns the errors of log.State.Trusted, because the policy may have been replaced, and fault.Overloaded while
// other simulations use all slots.
func (r *Simulator) EvaluateTrial(
	ctx context.Context, t id.Tenant, p policy.Policy, trial *policy.Trial,
) (policy.Explanation, error) {
	if err := r.limit.Acquire(t, 1); err != nil {
		return policy.Explanation{}, err
	}
	defer r.limit.Release(t, 1)
	if _, err := r.trustedState(ctx, t); err != nil {
		return policy.Explanation{}, err
	}
	tenant := admission.TenantOf(t)
	if err := r.processors.Acquire(ctx, tenant, 1); err != nil {
		return policy.Explanation{}, err
	}
	defer r.processors.Release(tenant, 1)
	if trial.Input.Now == 0 {
		trial.Input.Now = id.InstantOf(r.clock())
	}
	return policy.Explain(ctx, p, trial.Input)
}
