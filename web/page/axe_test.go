//go:build axe

package page_test

import (
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/chromium"
	"github.com/agentledger/agentledger/internal/test/servicetest"
)

func TestMain(m *testing.M) { os.Exit(servicetest.Main(m)) }

// axe-core reports no violation on any page for users, light and dark, with all sections expanded, and no page is wider
// than a phone. `make test-pages` installs axe-core.
func TestAccessibilityOfPeoplePages(t *testing.T) {
	axe := chromium.Axe(t, "..")
	s := servicetest.New(t)
	ann, b := s.SignIn(s.Red.Owner), s.Browser()
	paths := fill(s, ann)
	check := func(path string) {
		b.Visit(path)
		b.WantAccessible(axe, path)
	}
	for _, path := range []string{"/signin", "/forgot-password", "/reset-password", "/invitation", "/confirm-email"} {
		check(path)
	}
	b.Become(ann)
	for _, path := range paths {
		check(path)
	}
	for _, look := range fillVotes(s, ann) {
		b.Become(look.reader)
		b.Visit(look.path)
		b.WantAccessible(axe, "votes/"+look.name)
	}
}

// look is a page as a reader sees it.
type look struct {
	name   string
	reader *servicetest.Person
	path   string
}

// fillVotes gives an organization signed and unsigned votes, voter keys and changed sign-ins, and returns the pages
// that show them.
func fillVotes(s *servicetest.Service, ann *servicetest.Person) []look {
	obligation := func(approvals int, signed bool) []any {
		return []any{map[string]any{"type": "human_approval", "approvals": approvals, "signed": signed}}
	}
	ann.Call(http.MethodPost, "/v1/console/policies", map[string]any{"policy_id": "payments", "name": "Payments", "rules": []any{
		map[string]any{"rule_id": "wire", "tool": "acme.wire", "decision": "allow_with_obligation", "reason": "Two people look at wires", "obligations": obligation(2, false)},
		map[string]any{"rule_id": "payout", "tool": "acme.payout", "decision": "allow_with_obligation", "reason": "A payout needs a signature", "obligations": obligation(1, true)},
	}}, nil)
	ann.Call(http.MethodPost, "/v1/console/policies/payments/activate", nil, nil)
	carl, dora := s.SignIn("carl@red.example"), s.SignIn(s.Red.Join("dora", "approver"))
	eve := s.SignIn(s.Red.Join("eve-with-a-rather-long-name", "approver"))
	phone := eve.AddPasskey("phone")
	phone.Register(nil)
	one := s.SignIn(s.Red.Join("fred", "approver")).AddPasskey("phone")
	one.Register(nil)
	laptop := eve.AddPasskey("the laptop in the office, which has a fingerprint reader")
	laptop.Register(phone)
	eve.AddPasskey("a security key that signs no votes")
	payload := map[string]any{"amount_usd": 640, "order": "A-1009", "reason": "Charged twice, order returned", "customer": "Zoë O'Hara",
		"items": []any{map[string]any{"sku": "B-12", "count": 2, "price_usd": 320}}, "account": "DE89 3704 0044 0532 0130 00", "ticket": "T-20441",
		"country": "DE", "note": "The parcel came back on 26 November, and the carrier confirmed it."}
	ask := func(tool, trace string) servicetest.Asked {
		return s.Red.Ask(map[string]any{"tool_name": tool, "trace_id": trace, "payload": payload, "actor_principal": "support@red.example"})
	}
	both, open, done := ask("acme.wire", "wire"), ask("acme.payout", "payout"), ask("acme.payout", "paid")
	phone.Vote(both, "approve", "in budget")
	carl.Call(http.MethodPost, "/v1/console/approvals/"+both.ID+"/votes", map[string]any{"vote": "approve", "action_digest": both.ActionDigest}, nil)
	laptop.Vote(done, "approve", "The carrier confirmed it, see the ticket. The customer was told.")
	events := func(kind string) string {
		var found struct {
			Events []struct {
				ID string `json:"event_id"`
			} `json:"events"`
		}
		ann.Call(http.MethodGet, "/v1/console/events?action_kind="+kind, nil, &found)
		return "/console/events/" + found.Events[0].ID
	}
	var members struct {
		Members []struct {
			ID    string `json:"membership_id"`
			Email string `json:"email"`
		} `json:"members"`
	}
	ann.Call(http.MethodGet, "/v1/id/orgs/"+s.Red.ID+"/members", nil, &members)
	member := map[string]string{}
	for _, m := range members.Members {
		member[m.Email[:3]] = "/console/members/" + m.ID
	}
	looks := []look{
		{"event-vote", ann, events("ledger_approval")}, {"event-key", ann, events("ledger_voter_key")},
		{"factors-none", dora, "/account/factors"}, {"factors-one", one.Person, "/account/factors"}, {"factors-many", eve, "/account/factors"},
		{"member-none", ann, member["dor"]}, {"member-many", ann, member["eve"]},
	}
	s.Prove("carl@red.example")
	ann.Call(http.MethodPatch, "/v1/console/organization", map[string]any{"vote_hold_hours": 48, "signed_votes": "required"}, nil)
	approval := "/console/approvals/"
	return append(looks, look{"open-without-key", dora, approval + open.ID}, look{"open-with-key", eve, approval + open.ID},
		look{"open-held", s.SignIn("carl@red.example"), approval + open.ID},
		look{"signed", ann, approval + done.ID}, look{"signed-and-unsigned", ann, approval + both.ID},
		look{"inbox", eve, "/console/approvals"}, look{"settings", ann, "/console/settings"})
}

// The same for the operator's pages.
func TestAccessibilityOfOperatorPages(t *testing.T) {
	axe := chromium.Axe(t, "..")
	s := servicetest.New(t)
	s.Red.Send("e1", nil)
	operated := s.Operated()
	b := operated.Browser()
	check := func(path string) {
		b.Visit(path)
		b.WantAccessible(axe, path)
	}
	check("/operator/signin")
	b.Fill("secret", servicetest.Secret)
	b.Press("[value=sign-in]")
	for _, path := range []string{"/operator", "/operator/new", "/operator/organizations/red", "/operator/accounts",
		"/operator/accounts?email=" + url.QueryEscape(s.Red.Owner), "/operator/service"} {
		check(path)
	}
}

// fill gives an organization at least one object of each kind, and returns the paths of the pages that show them.
func fill(s *servicetest.Service, ann *servicetest.Person) []string {
	document := map[string]any{"policy_id": "refunds", "name": "Refunds", "rules": []any{
		map[string]any{"rule_id": "large", "tool": "acme.refund", "when": "payload.amount_usd > 50", "decision": "allow_with_obligation", "reason": "money leaves",
			"obligations": []any{map[string]any{"type": "human_approval"}}},
		map[string]any{"rule_id": "no-deletion", "tool": "acme.delete", "decision": "deny"}},
		"tests": []any{map[string]any{"name": "a refund", "input": map[string]any{"tool_name": "acme.refund", "payload": map[string]any{"amount_usd": 84.5}}, "expect": map[string]any{"decision": "allow_with_obligation"}}}}
	ann.Call(http.MethodPost, "/v1/console/policies", document, nil)
	ann.Call(http.MethodPost, "/v1/console/policies/refunds/activate", nil, nil)
	ann.Call(http.MethodPatch, "/v1/console/policies/refunds", document, nil)
	agent := "/v1/console/agents/" + s.Red.Agent.AgentID
	ann.Call(http.MethodPatch, agent, map[string]bool{"bridge": true}, nil)
	s.Red.Join("carl", "approver")
	for i, tool := range []string{"acme.orders.read", "acme.orders.write", "acme.delete", "acme.mail.send"} {
		name := "e" + string(rune('0'+i))
		payload := map[string]any{"order": "A-100" + name, "amount_usd": 84.5, "text": "a longer text, which a page for a phone has to wrap: " + strings.Repeat("word ", 30)}
		if i > 0 {
			payload["parent_event_id"] = "e" + string(rune('0'+i/2))
		}
		s.Red.Send(name, map[string]any{"tool_name": tool, "trace_id": "day", "payload": payload, "actor_principal": "desk"})
	}
	ann.Call(http.MethodPost, "/v1/console/events/e3/erase", map[string]string{"reason": "test_data"}, nil)
	decided, waiting := s.Red.Ask(nil), s.Red.Ask(map[string]any{"trace_id": "day", "payload": map[string]any{"amount_usd": 120, "order": "A-1002"}})
	ann.Call(http.MethodPost, "/v1/console/approvals/"+decided.ID+"/votes", map[string]string{"vote": "deny", "action_digest": decided.ActionDigest, "comment": "not without a receipt"}, nil)
	var run struct {
		ID string `json:"run_id"`
	}
	s.Red.Ingest(http.MethodPost, "/workflows/runs", map[string]any{"workflow": map[string]any{"name": "Invoices", "version": "7", "tool": "n8n"}, "agent_id": s.Red.Agent.AgentID, "planned_steps": 3}, &run)
	s.Red.Ingest(http.MethodPost, "/workflows/runs/"+run.ID+"/steps", map[string]any{"step_key": "read-mail", "status": "succeeded", "tool_name": "acme.mail.read"}, nil)
	s.Red.Ingest(http.MethodPost, "/workflows/runs/"+run.ID+"/complete", map[string]any{"status": "failed", "error": "no answer"}, nil)
	var erasures struct {
		Erasures []struct {
			ID    string `json:"erasure_id"`
			State string `json:"state"`
		} `json:"erasures"`
	}
	for len(erasures.Erasures) == 0 || erasures.Erasures[0].State != "done" {
		time.Sleep(10 * time.Millisecond)
		ann.Call(http.MethodGet, "/v1/console/erasures", nil, &erasures)
	}
	var endpoint struct {
		ID string `json:"endpoint_id"`
	}
	ann.Call(http.MethodPost, "/v1/console/webhooks", map[string]any{"url": "https://receiver.example/hook", "events": []string{"approval.*"}}, &endpoint)
	var members struct {
		Members []struct {
			ID string `json:"membership_id"`
		} `json:"members"`
	}
	ann.Call(http.MethodGet, "/v1/id/orgs/"+s.Red.ID+"/members", nil, &members)
	policy := "/console/policies/refunds"
	return []string{
		"/console", "/account", "/account/factors", "/account/sessions",
		"/console/events", "/console/events/e1", "/console/events/e3", "/console/erasures", "/console/erasures/" + erasures.Erasures[0].ID,
		"/console/traces", "/console/traces/day", "/console/runs", "/console/runs/" + run.ID, "/console/stats", "/console/audit", "/console/evidence",
		"/console/approvals", "/console/approvals/" + decided.ID, "/console/approvals/" + waiting.ID,
		"/console/policies", policy, policy + "/edit", policy + "/compare", policy + "/tests", policy + "/simulate",
		"/console/agents", "/console/agents/" + s.Red.Agent.AgentID, "/console/agents/" + s.Red.Agent.AgentID + "/keys/" + s.Red.Agent.KeyID,
		"/console/ingest-keys", "/console/ingest-keys/" + s.Red.IngestKey.KeyID, "/console/members", "/console/settings",
		"/console/settings/stream-export", "/console/settings/tokens", "/console/webhooks", "/console/settings/witnesses", "/console/events/none",
		"/console/webhooks/" + endpoint.ID, "/console/members/" + members.Members[0].ID,
	}
}
