package main

import (
	"context"
	"strings"

	"github.com/agentledger/agentledger/id"
)

// toolCall is what the model wants to be done.
type toolCall struct {
	tool      id.Tool
	arguments map[string]any
}

// observation is what came of a call, as the model sees it.
type observation struct {
	tool   id.Tool
	result string
}

// nextToolCall stands for a language model that is given the tools and what was seen so
// far. It follows a script, so that everybody sees the same conversation: a customer
// wants money back, and to be forgotten.
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

// tools are what the agent can do. The grant is the permission of people where the
// policy wants one, "" elsewhere; a tool that stands on its own checks it, as the
// one of examples/httptool does.
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
