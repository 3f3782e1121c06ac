package console

import (
	"fmt"

	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/simulate"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/policy"
)

// simulatedView begins both answers of a simulation.
type simulatedView struct {
	PolicyID      string  `json:"policy_id"`
	PolicyVersion uint64  `json:"policy_version"`
	PolicyDigest  id.Hash `json:"policy_digest"`
}

type trialView struct {
	simulatedView
	Decision    id.Decision         `json:"decision"`
	RuleID      string              `json:"rule_id"`
	Reason      string              `json:"reason"`
	Obligations []policy.Obligation `json:"obligations"`
	Shadow      []string            `json:"shadow"`
	EvaluatedAt id.Instant          `json:"evaluated_at"`
	InputDigest id.Hash             `json:"input_digest"`
	Limits      []claimView         `json:"limits"`
	Rules       []ruleView          `json:"rules"`
}

type claimView struct {
	LimitID  string          `json:"limit_id"`
	RuleID   string          `json:"rule_id"`
	Key      string          `json:"key"`
	Before   decimal.Decimal `json:"before"`
	Added    decimal.Decimal `json:"added"`
	Max      decimal.Decimal `json:"max"`
	Exceeded bool            `json:"exceeded"`
}

type ruleView struct {
	RuleID string        `json:"rule_id"`
	Mode   string        `json:"mode"`
	Result policy.Result `json:"result"`
	Why    *string       `json:"why"`
	Steps  []stepView    `json:"steps"`
}

type stepView struct {
	Expression string `json:"expression"`
	Value      string `json:"value"`
}

func describeSimulated(v policystore.Version) simulatedView {
	return simulatedView{v.PolicyID, v.Version, v.Digest}
}

func describeTrial(v policystore.Version, x *policy.Explanation, trial *policy.Trial) trialView {
	o := x.Settle(trial.Exceeds)
	view := trialView{
		simulatedView: describeSimulated(v),
		Decision:      o.Decision, RuleID: o.RuleID, Reason: o.Reason, Obligations: o.Obligations, Shadow: o.Shadow,
		EvaluatedAt: trial.Input.Now, InputDigest: policy.InputDigest(trial.Input),
	}
	for i := range x.Claims {
		c := &x.Claims[i]
		view.Limits = append(view.Limits, claimView{
			c.Limit.ID, c.RuleID, c.Key, trial.Before[c.Limit.ID], c.Added, c.Limit.Max, trial.Exceeds(c),
		})
	}
	for _, r := range x.Rules {
		rule := ruleView{RuleID: r.RuleID, Mode: r.Mode.String(), Result: r.Result}
		if r.Why != "" {
			rule.Why = &r.Why
		}
		for _, step := range r.Steps {
			rule.Steps = append(rule.Steps, stepView(step))
		}
		view.Rules = append(view.Rules, rule)
	}
	return view
}

type simulationView struct {
	simulatedView
	Summary      string         `json:"summary"`
	FromSequence uint64         `json:"from_sequence"`
	ToSequence   uint64         `json:"to_sequence"`
	Complete     bool           `json:"complete"`
	Evaluated    int            `json:"evaluated"`
	WithoutTool  int            `json:"without_tool"`
	Erased       int            `json:"erased"`
	Results      int            `json:"results"`
	Shadow       map[string]int `json:"shadow"`
	Changed      int            `json:"changed"`
	Tightened    int            `json:"tightened"`
	Loosened     int            `json:"loosened"`
	Changes      []changeView   `json:"changes"`
}

type changeView struct {
	SequenceNum uint64     `json:"sequence_num"`
	EventID     id.Event   `json:"event_id"`
	AgentID     id.Agent   `json:"agent_id"`
	ToolName    id.Tool    `json:"tool_name"`
	ReceivedAt  id.Instant `json:"received_at"`
	Recorded    said       `json:"recorded"`
	Simulated   said       `json:"simulated"`
	Reason      string     `json:"reason"`
}

// said is a decision with its policy and rule, null where no policy was asked.
type said struct {
	Decision id.Decision `json:"decision"`
	PolicyID *string     `json:"policy_id"`
	RuleID   *string     `json:"rule_id"`
}

func describeSimulation(v policystore.Version, r *simulate.Report) simulationView {
	view := simulationView{
		simulatedView: describeSimulated(v),
		Summary:       fmt.Sprintf("%d of %d would change", r.Changed, r.Evaluated),
		FromSequence:  r.Begin.Sequence(), ToSequence: uint64(r.End), Complete: r.Complete,
		Evaluated: r.Evaluated, WithoutTool: r.WithoutTool, Erased: r.Erased, Results: r.Results,
		Shadow: r.Shadow, Changed: r.Changed, Tightened: r.Tightened, Loosened: r.Loosened,
	}
	for _, c := range r.Changes {
		view.Changes = append(view.Changes, changeView{
			SequenceNum: c.Sequence, EventID: c.Event, AgentID: c.Agent, ToolName: c.Tool, ReceivedAt: c.ReceivedAt,
			Recorded:  said{c.Recorded, textOrNull(c.RecordedPolicy), textOrNull(c.RecordedRule)},
			Simulated: said{c.Simulated, &v.PolicyID, &c.Rule},
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
