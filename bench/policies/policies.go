// Package policies compares the policy engine with others: package policy, Open Policy Agent and Cedar decide the same
// requests by the same rules. It is a separate module, so that no other module has their dependencies.
//
// Like the service, every contender receives a request as JSON text and reports whether it is denied. A set has rules like
//
//	deny tool vendor3.area7.operation7 if payload.amount_usd > 1007 and payload.currency == "USD"
//
// and otherwise allows everything.
package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/policy"
)

// Denies reports whether a call of a tool is denied. payload is canonical JSON.
type Denies func(tool string, payload []byte) (bool, error)

// Tool returns the tool of rule i.
func Tool(i int) string { return fmt.Sprintf("vendor%d.area%d.operation%d", i%20, i%50, i) }

// Bound returns the largest amount that rule i allows.
func Bound(i int) int { return 1000 + i%1000 }

// Agentledger decides by rules [begin, end).
func Agentledger(begin, end int) (Denies, error) {
	var rules []string
	for i := begin; i < end; i++ {
		rules = append(rules, fmt.Sprintf(`{"rule_id":"r%d","tool":"%s","decision":"deny","when":"payload.amount_usd > %d && payload.currency == 'USD'"}`, i, Tool(i), Bound(i)))
	}
	p, err := policy.Parse(fmt.Appendf(nil, `{"policy_id":"p","version":1,"name":"n","rules":[%s]}`, strings.Join(rules, ",")))
	if err != nil {
		return nil, err
	}
	c, err := policy.Compile(p)
	if err != nil {
		return nil, err
	}
	return func(tool string, payload []byte) (bool, error) {
		e := c.Evaluate(policy.Input{Tool: id.Tool(tool), Agent: "agt_1", ActorType: "agent", ActionKind: "tool_call", Payload: payload})
		o := e.Settle(nil)
		return o.Decision == id.Deny, nil
	}, nil
}

// OPA decides by a prepared query. Its compiler indexes the rules by tool.
func OPA(begin, end int) (Denies, error) {
	var b strings.Builder
	b.WriteString("package p\nimport rego.v1\n")
	for i := begin; i < end; i++ {
		fmt.Fprintf(&b, "deny contains \"r%d\" if { input.tool == %q; input.payload.amount_usd > %d; input.payload.currency == \"USD\" }\n", i, Tool(i), Bound(i))
	}
	ctx := context.Background()
	query, err := rego.New(rego.Query("count(data.p.deny)"), rego.Module("p.rego", b.String())).PrepareForEval(ctx)
	if err != nil {
		return nil, err
	}
	return func(tool string, payload []byte) (bool, error) {
		var document map[string]any
		if err := json.Unmarshal(payload, &document); err != nil {
			return false, err
		}
		found, err := query.Eval(ctx, rego.EvalInput(map[string]any{"tool": tool, "payload": document}))
		if err != nil {
			return false, err
		}
		return found[0].Expressions[0].Value != json.Number("0"), nil
	}, nil
}

// Cedar decides by a set of policies, with the payload as context.
func Cedar(begin, end int) (Denies, error) {
	var b strings.Builder
	b.WriteString("permit(principal, action, resource);\n")
	for i := begin; i < end; i++ {
		fmt.Fprintf(&b, "forbid(principal, action == Tool::%q, resource) when { context.amount_usd > %d && context.currency == \"USD\" };\n", Tool(i), Bound(i))
	}
	set, err := cedar.NewPolicySetFromBytes("p.cedar", []byte(b.String()))
	if err != nil {
		return nil, err
	}
	agent, ledger := cedar.NewEntityUID("Agent", "agt_1"), cedar.NewEntityUID("Ledger", "l")
	return func(tool string, payload []byte) (bool, error) {
		var context cedar.Record
		if err := json.Unmarshal(payload, &context); err != nil {
			return false, err
		}
		decision, _ := cedar.Authorize(set, nil, cedar.Request{
			Principal: agent, Action: cedar.NewEntityUID("Tool", cedar.String(tool)), Resource: ledger, Context: context,
		})
		return decision == cedar.Deny, nil
	}, nil
}
