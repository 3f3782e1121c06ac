package console_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// activateRefunds gives an organization a policy under which an approver decides on refunds.
func activateRefunds(p *servicetest.Person) {
	document := map[string]any{"policy_id": "p", "name": "Refunds", "rules": []any{
		map[string]any{"rule_id": "refunds", "tool": "acme.refund", "decision": "allow_with_obligation",
			"obligations": []any{map[string]any{"type": "human_approval"}}},
		map[string]any{"rule_id": "no-deletion", "tool": "acme.delete", "decision": "deny"}}}
	p.Call(http.MethodPost, "/v1/console/policies", document, nil)
	p.Call(http.MethodPost, "/v1/console/policies/p/activate", nil, nil)
}

// day sends the events of an agent's day in a trace: e0 to e4, of which e3 is denied, and an event of the other
// organization with the same name as e1.
func day(s *servicetest.Service) {
	for i, tool := range []string{"acme.orders.read", "acme.orders.write", "acme.mail.send", "acme.delete", "acme.orders.read"} {
		payload := map[string]any{"order": fmt.Sprint("canary-", i), "amount_usd": 84.5}
		if i > 0 {
			payload["parent_event_id"] = fmt.Sprint("e", (i-1)/2)
		}
		s.Red.Send(fmt.Sprint("e", i), map[string]any{"tool_name": tool, "payload": payload, "trace_id": "day", "actor_principal": "desk " + fmt.Sprint(i%2)})
	}
	s.Blue.Send("e1", map[string]any{"tool_name": "acme.blue", "trace_id": "day"})
}

// awaitErased waits until an erasure is complete.
func awaitErased(p *servicetest.Person, name string) {
	for state := struct{ State string }{}; state.State != "done"; time.Sleep(10 * time.Millisecond) {
		p.Call(http.MethodGet, "/v1/console/erasures/"+name, nil, &state)
	}
}
