package main

import (
	"context"
	"strings"

	"github.com/agentledger/agentledger/id"
)

// toolCall is a call that the model wants.
type toolCall struct {
	tool      id.Tool
	arguments map[string]any
}

// observation is the result of a call for the model.
type observation struct {
	tool   id.Tool
	result string
}

// nextToolCall stands for a language model that receives the tools and the observations
// so far. It follows a script, so that each run shows the same conversation: a customer
// wants a refund and the deletion of an account.
func nextToolCall(seen []observation) (call *toolCall, answer string) {
	script := []toolCall{
		{"acme.orders.read", map[string]any{"order_id": "A-1009"}},
		{"acme.customers.delete", map[string]any{"customer_id": "c-77"}},
		{"acme.payments.refund", map[string]any{"order_id": "A-1009", "amount_usd": 84.5, "currency": "USD"}},
	}
	if len(seen) < len(script) {
		return &script[len(seen)], ""
	}
	if refund := seen[2].result; strings.HasPrefix(refund, "denied") || strings.HasPrefix(refund, "failed") {
		return nil, "We can't refund you: " + refund
	}
	return nil, "Your refund of 84.50 USD is on its way."
}

// tools are the agent's tools. The grant is the approval if the policy requires one, or "". A tool in another process checks
// it, as examples/httptool does.
var tools = map[id.Tool]func(ctx context.Context, arguments map[string]any, grant string) (any, error){
	"acme.orders.read": func(_ context.Context, arguments map[string]any, _ string) (any, error) {
		return map[string]any{"order_id": arguments["order_id"], "status": "delivered", "paid_usd": 84.5}, nil
	},
	"acme.customers.delete": func(context.Context, map[string]any, string) (any, error) {
		return map[string]any{"deleted": true}, nil
	},
	"acme.payments.refund": func(_ context.Context, arguments map[string]any, _ string) (any, error) {
		return map[string]any{"refunded_usd": arguments["amount_usd"]}, nil
	},
}
