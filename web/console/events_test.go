package console_test

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

var eventLink = regexp.MustCompile(`<td class="k"><a href="/console/events/([A-Za-z0-9._:-]+)`)

// listed returns the ids of a list's events without system events.
func listed(body string) string {
	var all []string
	for _, m := range eventLink.FindAllStringSubmatch(body, -1) {
		if !strings.HasPrefix(m[1], "sys_") {
			all = append(all, m[1])
		}
	}
	return strings.Join(all, " ")
}

// The list has every filter of the API, search, order and pages, without JavaScript.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	activateRefunds(ann)
	day(s)
	page := ann.Get("/console/events?signer=agent")
	page.Want(t, "events", http.StatusOK, "agent said allow", "data-follow=", "format=csv", "desk 1", "Indexed up to event ")
	for query, want := range map[string]string{
		"signer=agent": "e4 e3 e2 e1 e0", "signer=agent&order=oldest": "e0 e1 e2 e3 e4", "tool=acme.orders.*": "e4 e1 e0", "tool=acme.orders.read&trace_id=day": "e4 e0",
		"decision=deny": "e3", "declared=deny": "", "principal=desk+1": "e3 e1", "q=CANARY-2": "e2", "agent_id=" + s.Red.Agent.AgentID + "&limit=25": "e4 e3 e2 e1 e0",
		"trace_id=none": "", "action_kind=tool_call&tool=&agent_id=": "e4 e3 e2 e1 e0", "from=2026-01-01&to=2026-01-02": "", "from=2026-01-01+12:30&signer=agent": "e4 e3 e2 e1 e0",
	} {
		if got := listed(ann.Get("/console/events?" + query).Body); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	for query, want := range map[string]string{"from=yesterday": "from must be a UTC time", "tool=a..b": "tool must be a tool name", "decision=maybe": "decision must be", "limit=0": "limit must be",
		"after=x": "after must be a log index", "q=" + strings.Repeat("x", 300): "q must have at most 256 bytes"} {
		refused := ann.Get("/console/events?" + query)
		refused.Want(t, query, http.StatusUnprocessableEntity, want, `<form method="get"`)
		refused.WantNone(t, query, "data-follow")
	}
	ann.Get("/console/events?log=none").Want(t, "another log", http.StatusNotFound)
	// The links to files return the same as the API.
	csv := regexp.MustCompile(`href="([^"]+format=csv[^"]*)"`).FindStringSubmatch(page.Body)
	file := ann.Get(html.UnescapeString(csv[1]))
	file.Want(t, "CSV", http.StatusOK, "log_index,event_id", ",e3,")
	file.WantNone(t, "CSV", "ledger_key_registered") // the filter applies

	bob := s.SignIn(s.Blue.Owner)
	other := bob.Get("/console/events")
	if got := listed(other.Body); got != "e1" {
		t.Errorf("the other organization sees %q", got)
	}
	other.WantNone(t, "the other organization", "acme.orders", "desk 1")
	s.Stranger().Get("/console/events").Want(t, "a stranger", http.StatusSeeOther)
	if got := listed(s.SignIn(s.Red.Join("carl", "member")).Get("/console/events?q=canary-2").Body); got != "" {
		t.Errorf("a member can search payloads: %q", got)
	}
}

// Many events are listed page by page, each once.
func TestEventPages(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	const n = 260
	for i := range n {
		s.Red.Send(fmt.Sprint("e", i), nil)
	}
	next := regexp.MustCompile(`<a rel="next" href="([^"]+)"`)
	for _, query := range []string{"?signer=agent", "?signer=agent&order=oldest&limit=25"} {
		seen, page := map[string]bool{}, ann.Get("/console/events"+query)
		for range 20 {
			for _, name := range strings.Fields(listed(page.Body)) {
				if seen[name] {
					t.Errorf("%s: %s is on two pages", query, name)
				}
				seen[name] = true
			}
			link := next.FindStringSubmatch(page.Body)
			if link == nil {
				break
			}
			page = ann.Get(html.UnescapeString(link[1]))
			page.WantNone(t, query, "data-follow")
		}
		if len(seen) != n {
			t.Errorf("%s: %d of %d events are on pages", query, len(seen), n)
		}
	}
}

// The page of an event has its documents according to the role, its proof and its neighbors.
func TestEvent(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	activateRefunds(ann)
	day(s)
	page := ann.Get("/console/events/e3")
	page.Want(t, "e3", http.StatusOK, "acme.delete", "the agent said allow", "no-deletion", "canary-3", "84.5", "ingest_key_id", "Signature of the agent's key", "holds", s.Red.Origin, s.Red.LogKey,
		`<a href="/v1/public/orgs/red/verify/e3">`, `<a rel="prev" href="/console/events/e2"`, `<a rel="next" href="/console/events/e4"`, `/console/traces/day`, "Erase the payload permanently")
	page.WantNone(t, "e3", "does not hold", "not checked")
	public := s.Stranger().Get("/v1/public/orgs/red/verify/e3")
	public.Want(t, "the public page", http.StatusOK, "e3")
	bob.Get("/console/events/e3").Want(t, "the other organization", http.StatusNotFound)
	bob.Post("/console/events/e3", "do", "erase", "reason", "test_data", "sure", "yes").Want(t, "the other organization erases", http.StatusNotFound)
	own := bob.Get("/console/events/e1")
	own.Want(t, "the event of the same name", http.StatusOK, "acme.blue")
	own.WantNone(t, "the event of the same name", "canary", "acme.orders")
	ann.Get("/console/events/none").Want(t, "an unknown event", http.StatusNotFound)

	for role, reads := range map[string]bool{"admin": true, "auditor": true, "approver": false, "policy_editor": false, "member": false} {
		p := s.SignIn(s.Red.Join(role, role))
		page := p.Get("/console/events/e3")
		page.WantNone(t, role, "Erase the payload permanently")
		if reads {
			page.Want(t, role, http.StatusOK, "canary-3")
		} else {
			page.Want(t, role, http.StatusOK, "Your role does not show envelopes.", "no-deletion")
			page.WantNone(t, role, "canary-3")
		}
		p.Post("/console/events/e3", "do", "erase", "reason", "test_data", "sure", "yes").Want(t, role+" erases", http.StatusForbidden, "Your role does not allow this")
	}
}

// A number that a double cannot hold is recorded with a tag, judged exactly, and shown as the number.
func TestExactNumbers(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	document := map[string]any{"policy_id": "p", "name": "Refunds", "rules": []any{
		map[string]any{"rule_id": "large", "tool": "acme.refund", "decision": "allow_with_obligation", "when": "payload.wei > 9007199254740992",
			"obligations": []any{map[string]any{"type": "human_approval"}}},
		map[string]any{"rule_id": "sum", "tool": "acme.refund", "decision": "deny",
			"limit": map[string]any{"limit_id": "l", "sum": "wei", "by": "tool", "window_seconds": 3600, "max": "9007199254740994"}}}}
	ann.Call(http.MethodPost, "/v1/console/policies", document, nil)
	ann.Call(http.MethodPost, "/v1/console/policies/p/activate", nil, nil)

	number := func(digits string) map[string]any {
		return map[string]any{"$tagged": true, "wei": map[string]string{"$number": digits}, "o": map[string]any{"$object": map[string]string{"$number": "5"}}}
	}
	const wei = "9007199254740993"
	asked := s.Red.Ask(map[string]any{"tool_name": "acme.refund", "payload": number(wei)})
	want(t, "the approval", ann.Get("/console/approvals/"+asked.ID), http.StatusOK, wei)
	wantNot(t, "the approval", ann.Get("/console/approvals/"+asked.ID), "$tagged", "$object")

	s.Red.Send("large", map[string]any{"tool_name": "acme.refund", "payload": number(wei)})
	s.Red.Send("beyond", map[string]any{"tool_name": "acme.refund", "payload": number("3.0000000000000001")})
	s.Red.Send("untagged", map[string]any{"tool_name": "acme.refund", "payload": map[string]any{"wei": map[string]string{"$number": wei}}})
	shown := func(digits string) string { return "<bdi>" + digits + `</bdi></td>` }
	rule := func(name string) string { return "&#34;rule_id&#34;: &#34;" + name + "&#34;" }
	ann.Get("/console/events/large").Want(t, "the event", http.StatusOK, rule("large"), shown(wei), "&#34;added&#34;: &#34;"+wei)
	ann.Get("/console/events/beyond").Want(t, "an event beyond the limit", http.StatusOK, rule("sum"), shown("3.0000000000000001"), "&#34;effective&#34;: &#34;deny&#34;")
	ann.Get("/console/events/untagged").Want(t, "the event without the marker", http.StatusOK, "&#34;effective&#34;: &#34;deny&#34;")
}

// A system event links to the approval or the run that it is about.
func TestEventLinks(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	activateRefunds(ann)
	asked := s.Red.Ask(nil)
	step := regexp.MustCompile(`/console/events/(sys_[A-Za-z0-9._:-]+|[A-Za-z0-9._:-]+)" title`).FindStringSubmatch(ann.Get("/console/events?action_kind=ledger_approval").Body)
	page := ann.Get("/console/events/" + step[1])
	page.Want(t, "an event about an approval", http.StatusOK, `/console/approvals/`+asked.ID, "the service, for itself", "Erase the payload of the approval")
	key := regexp.MustCompile(`<td class="k"><a href="(/console/events/[^"]+)"`).FindStringSubmatch(ann.Get("/console/events?action_kind=ledger_policy_activated").Body)
	ann.Get(key[1]).WantNone(t, "another event of the service", "Erase the payload permanently")
	ann.Post(key[1], "do", "erase", "reason", "test_data", "sure", "yes").Want(t, "it is erased", http.StatusUnprocessableEntity, "System events are never erased")
}
