package main

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// The owner of the demo's organization.
const demoEmail, demoPassword = "ops@acme.example", "correct horse battery staple"

// policyOfTheDay is the policy of the demo's organization.
var policyOfTheDay = map[string]any{
	"policy_id": "support-desk", "name": "Support desk", "default": "allow",
	"rules": []map[string]any{
		{"rule_id": "refunds-need-a-person", "tool": "acme.payments.refund", "decision": "allow_with_obligation",
			"reason": "A person looks at every refund", "obligations": []map[string]any{{"type": "human_approval"}}},
		{"rule_id": "no-deletion", "tool": "acme.customers.**", "decision": "deny",
			"reason": "Customers are not the agent's business"},
	},
}

// playStory plays all scenes and returns the agent, which can work on. An error means that the demo could not go on. A
// check that fails is no error: the stage counts it.
func playStory(ctx context.Context, s *stage, running *server) (*worker, error) {
	acme, other, err := playSetUp(ctx, s, running)
	if err != nil {
		return nil, err
	}
	worker, err := newWorker(running.mainURL(), acme, client.Retry{})
	if err != nil {
		return nil, err
	}
	morning, err := worker.log.fetchHead(ctx)
	if err != nil {
		return nil, err
	}
	sent, err := playWork(ctx, s, worker)
	if err != nil {
		return nil, err
	}
	if err := playTrouble(ctx, s, worker, other, sent); err != nil {
		return nil, err
	}
	return worker, playOutsider(ctx, s, running, acme, morning, sent)
}

// playSetUp is the operator's part: two organizations, a policy for one.
func playSetUp(ctx context.Context, s *stage, running *server) (acme, other foundedOrganization, err error) {
	s.BeginScene("An operator makes two organizations and gives one a policy")
	o, err := newOperator(running.mainURL(), running.identityURL())
	if err != nil {
		return acme, other, err
	}
	if acme, err = o.foundOrganization(ctx, running.platformSecret, map[string]any{
		"name": "Acme", "slug": "acme", "disclosure": "full",
		"admin_email": demoEmail, "admin_password": demoPassword}); err != nil {
		return acme, other, err
	}
	if other, err = o.foundOrganization(ctx, running.platformSecret, map[string]any{
		"name": "Globex", "slug": "globex",
		"admin_email": "ops@globex.example", "admin_password": demoPassword}); err != nil {
		return acme, other, err
	}
	if err = o.signIn(ctx, demoEmail, demoPassword); err != nil {
		return acme, other, err
	}
	if err = o.callConsole(ctx, "POST", "/policies", policyOfTheDay, nil); err != nil {
		return acme, other, err
	}
	if err = o.callConsole(ctx, "POST", "/policies/support-desk/activate", map[string]any{}, nil); err != nil {
		return acme, other, err
	}
	s.acme = acme
	s.PrintNote("log origin  %s", acme.Origin)
	s.PrintNote("log key     %s", acme.LogKey)
	s.PrintNote("agent       %s", acme.Agent.AgentID)
	s.PrintConclusion("each organization has its own log, under its own key; auditors pin that key now")
	return acme, other, nil
}

// act is one thing that the agent does in its day.
type act struct {
	kind, tool string
	payload    map[string]any
	want       id.Decision // the effective decision
}

var day = []act{
	{"llm_invocation", "", map[string]any{"purpose": "customer_support", "model": "assistant-1",
		"data_touched": []string{"conversation"}}, id.Allow},
	{"tool_call", "acme.orders.read", map[string]any{"order_id": "A-1009", "data_touched": []string{"orders"}},
		id.Allow},
	{"result", "acme.orders.read", map[string]any{"phase": "result", "result_status": "ok"}, id.Allow},
	{"llm_invocation", "", map[string]any{"purpose": "draft_answer", "model": "assistant-1"}, id.Allow},
	{"tool_call", "acme.payments.refund", map[string]any{"order_id": "A-1009", "amount_usd": 84.5, "currency": "USD"},
		id.AllowWithObligation},
	{"tool_call", "acme.customers.delete", map[string]any{"customer_id": "c-77"}, id.Deny},
	{"tool_call", "acme.mail.send", map[string]any{"to": "customer", "template": "refund_pending"}, id.Allow},
	{"result", "acme.mail.send", map[string]any{"phase": "result", "result_status": "ok"}, id.Allow},
}

// playWork plays the agent's day: the agent asks before it calls a tool, and signs an
// event for each act, which always declares "allow". playWork returns the signed envelopes.
func playWork(ctx context.Context, s *stage, w *worker) ([][]byte, error) {
	s.BeginScene("The agent works: it asks before it acts, and signs what it did")
	var sent [][]byte
	for i, a := range day {
		if a.tool != "" && a.kind == "tool_call" {
			d, err := w.client.Evaluate(ctx, client.Question{Organization: w.org.OrganizationID,
				Agent: w.org.Agent.AgentID, Tool: id.Tool(a.tool), Payload: a.payload})
			if err != nil {
				return nil, err
			}
			s.CountCheck(d.Decision == a.want, "asks  %-24s %s (rule %s)", a.tool, d.Decision, d.RuleID)
		}
		extra := map[string]any{}
		if a.kind == "result" { // of the call before it
			extra["parent_event_id"] = dayEventID(i - 1)
		}
		e := client.Event{EventID: dayEventID(i), TraceID: "conversation-1", Extra: extra}
		envelope, r, err := w.sendAct(ctx, a, e)
		if err != nil {
			return nil, err
		}
		sent = append(sent, envelope)
		effective := max(r.Decision, id.Allow)
		s.CountCheck(r.Status == client.Created && effective == a.want, "signs %-24s #%d %s", actName(a), r.Sequence,
			effective)
	}
	s.PrintConclusion("the agent declared 'allow' each time; where the policy is stricter, " +
		"the record says so (it only ever tightens)")
	return sent, nil
}

// sendAct signs and sends the event of an act. Ids and members beyond those of the act are in e.
func (w *worker) sendAct(ctx context.Context, a act, e client.Event) (envelope []byte, r client.Result, err error) {
	e.ActorPrincipal, e.ActionKind, e.Decision = "support-agent", a.kind, id.Allow
	e.Tool, e.Payload = id.Tool(a.tool), a.payload
	if envelope, err = w.signer.SignEvent(e); err != nil {
		return nil, r, err
	}
	r, err = w.client.Send(ctx, envelope)
	return envelope, r, err
}

// dayEventID names the event of an act by its place in the day.
func dayEventID(i int) id.Event { return id.Event(fmt.Sprintf("day-%02d", i+1)) }

func actName(a act) string {
	if a.tool == "" {
		return a.kind
	}
	return a.tool
}
