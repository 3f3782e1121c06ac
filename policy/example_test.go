package policy_test

import (
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/policy"
)

// A policy document is parsed, compiled once and evaluated for each action.
func Example() {
	document, err := policy.Parse([]byte(`{"policy_id": "shop", "version": 1, "name": "Shop", "rules": [
		{"rule_id": "small", "tool": "acme.payments.refund", "decision": "allow", "when": "payload.amount_usd <= 50.0"},
		{"rule_id": "refunds", "tool": "acme.payments.refund", "decision": "allow_with_obligation",
			"when": "payload.amount_usd > 50.0", "obligations": [{"type": "human_approval"}]}
	]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	compiled, err := policy.Compile(document)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, payload := range []string{`{"amount_usd":20}`, `{"amount_usd":84.5}`} {
		evaluation := compiled.Evaluate(policy.Input{Tool: "acme.payments.refund", Agent: "agt_support", Payload: []byte(payload)})
		outcome := evaluation.Settle(nil) // this policy has no limits
		fmt.Println(payload, outcome.Decision, outcome.RuleID, outcome.Effective(id.Allow))
	}
	// Output:
	// {"amount_usd":20} allow small allow
	// {"amount_usd":84.5} allow_with_obligation refunds allow_with_obligation
}
