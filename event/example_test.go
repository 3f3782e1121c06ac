package event_test

import (
	"fmt"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
)

// An envelope is signed, parsed strictly and verified under the agent's key.
func Example() {
	key, err := edkey.PrivateFromSeed(make([]byte, edkey.SeedSize)) // a seed for examples only
	if err != nil {
		fmt.Println(err)
		return
	}
	envelope, err := event.Sign([]byte(`{
		"schema_version": 1, "organization_id": "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11",
		"event_id": "evt_1", "trace_id": "trc_1", "agent_id": "agt_support", "key_id": "key_1",
		"emitted_at": "2026-11-20T12:00:00.000Z", "actor_type": "agent", "actor_principal": "ops@acme.example",
		"action_kind": "tool_call", "tool_name": "acme.orders.read", "policy_decision": "allow", "payload": {"order": "A-1009"}
	}`), key)
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := event.Parse(envelope, event.Options{MaxBytes: event.DefaultMaxBytes})
	if err != nil {
		fmt.Println(err)
		return
	}
	form, ok := e.Verify(key.Public())
	fmt.Println(e.EventID, e.Tool, form, ok)

	_, err = event.Parse([]byte(`{"schema_version": 1}`), event.Options{MaxBytes: event.DefaultMaxBytes})
	fmt.Println("malformed:", fault.Is(err, fault.Invalid))
	// Output:
	// evt_1 acme.orders.read digest true
	// malformed: true
}
