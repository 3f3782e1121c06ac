package console

import (
	"fmt"

	"github.com/agentledger/agentledger/internal/operate/simulate"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/policy"
)

func describeSimulated(v policystore.Version) wire.SimulatedPolicy {
	return wire.SimulatedPolicy{PolicyID: v.PolicyID, Version: v.Version, Digest: v.Digest}
}

func describeTrial(v policystore.Version, x *policy.Explanation, trial *policy.Trial) wire.Trial {
	o := x.Settle(trial.Exceeds)
	view := wire.Trial{
		SimulatedPolicy: describeSimulated(v),
		Decision:        o.Decision.String(), RuleID: o.RuleID, Reason: o.Reason, Shadow: o.Shadow,
		EvaluatedAt: trial.Input.Now, InputDigest: policy.InputDigest(trial.Input),
	}
	for _, one := range o.Obligations {
		view.Obligations = append(view.Obligations, wire.Obligation(one))
	}
	for i := range x.Claims {
		c := &x.Claims[i]
		view.Limits = append(view.Limits, wire.TrialLimit{
			LimitID: c.Limit.ID, RuleID: c.RuleID, Key: c.Key, Before: trial.Before[c.Limit.ID], Added: c.Added,
			Max: c.Limit.Max, Exceeded: trial.Exceeds(c),
		})
	}
	for _, r := range x.Rules {
		rule := wire.TrialRule{RuleID: r.RuleID, Mode: r.Mode.String(), Result: string(r.Result), Why: wire.Text(r.Why)}
		for _, step := range r.Steps {
			rule.Steps = append(rule.Steps, wire.TrialStep(step))
		}
		view.Rules = append(view.Rules, rule)
	}
	return view
}

func describeSimulation(v policystore.Version, r *simulate.Report) wire.Simulation {
	view := wire.Simulation{
		SimulatedPolicy: describeSimulated(v),
		Summary:         fmt.Sprintf("%d of %d would change", r.Changed, r.Evaluated),
		FromSequence:    r.Begin.Sequence(), ToSequence: uint64(r.End), Complete: r.Complete,
		Evaluated: r.Evaluated, WithoutTool: r.WithoutTool, Erased: r.Erased, Results: r.Results,
		Shadow: r.Shadow, Changed: r.Changed, Tightened: r.Tightened, Loosened: r.Loosened,
	}
	for _, c := range r.Changes {
		view.Changes = append(view.Changes, wire.Change{
			SequenceNum: c.Sequence, EventID: c.Event, AgentID: c.Agent, ToolName: c.Tool, ReceivedAt: c.ReceivedAt,
			Recorded:  wire.Decided{Decision: c.Recorded.String(), PolicyID: textOrNull(c.RecordedPolicy), RuleID: textOrNull(c.RecordedRule)},
			Simulated: wire.Decided{Decision: c.Simulated.String(), PolicyID: &v.PolicyID, RuleID: &c.Rule},
			Reason:    c.Reason,
		})
	}
	return view
}

func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
