package web_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/web/console"
	"github.com/agentledger/agentledger/web/page"
)

// peoplePage is a page for users: its screen, an address, and texts that it shows.
type peoplePage struct {
	pattern string // of the screen; "" if it equals the path
	path    string
	shows   []string
}

// entryPages are the pages that strangers see.
var entryPages = []peoplePage{
	{path: "/signin", shows: []string{"Sign in", "E-mail address", "Password"}},
	{path: "/signin/second", shows: []string{"Second factor"}},
	{path: "/signout", shows: []string{"Sign out"}},
	{path: "/setup", shows: []string{"Set up the service"}},
	{path: "/forgot-password", shows: []string{"Forgotten password"}},
	{path: "/reset-password", shows: []string{"A new password"}},
	{path: "/invitation", shows: []string{"Invitation"}},
}

// day gives an organization a day of work. Its first approval is used, and its second one is pending.
func day(s *servicetest.Service) (first, second servicetest.Asked, run, endpoint string) {
	ann := s.SignIn(s.Red.Owner)
	s.Red.Join("max", "approver")
	ann.Call(http.MethodPost, "/v1/id/orgs/"+s.Red.ID+"/invitations", map[string]string{"email": "kim@red.example", "role": "auditor"}, nil)
	ann.Call(http.MethodPost, "/v1/console/policies", map[string]any{"policy_id": "p", "name": "Refunds", "rules": []any{
		map[string]any{"rule_id": "refunds", "tool": "acme.refund", "decision": "allow_with_obligation", "reason": "A person looks at refunds",
			"obligations": []any{map[string]any{"type": "human_approval"}}},
		map[string]any{"rule_id": "no-deletion", "tool": "acme.delete", "decision": "deny"}}}, nil)
	ann.Call(http.MethodPost, "/v1/console/policies/p/activate", nil, nil)
	for i, tool := range []string{"acme.orders.read", "acme.delete", "acme.mail.send"} {
		name := "e" + string(rune('0'+i))
		payload := map[string]any{"order": "A-100" + name, "amount_usd": 84.5}
		if i > 0 {
			payload["parent_event_id"] = "e0"
		}
		s.Red.Send(name, map[string]any{"tool_name": tool, "payload": payload, "trace_id": "day", "actor_principal": strings.Repeat("long-", 30)})
	}
	first, second = s.Red.Ask(map[string]any{"trace_id": "day"}), s.Red.Ask(map[string]any{"trace_id": "night"})
	ann.Post("/console/approvals/"+first.ID, "do", "approve", "action_digest", first.ActionDigest)
	s.Red.Consume(first)
	var made struct {
		Run      string `json:"run_id"`
		Endpoint string `json:"endpoint_id"`
	}
	ann.Call(http.MethodPatch, "/v1/console/agents/"+s.Red.Agent.AgentID, map[string]bool{"bridge": true}, nil)
	s.Red.Ingest(http.MethodPost, "/workflows/runs", map[string]any{"workflow": map[string]any{"name": "Invoices", "version": "7", "tool": "n8n"},
		"agent_id": s.Red.Agent.AgentID, "planned_steps": 2}, &made)
	s.Red.Ingest(http.MethodPost, "/workflows/runs/"+made.Run+"/steps", map[string]any{"step_key": "read-mail", "status": "succeeded", "tool_name": "acme.mail.read"}, nil)
	ann.Call(http.MethodPost, "/v1/console/webhooks", map[string]any{"url": "https://hooks.example/x", "events": []string{"approval.*"}, "name": "Desk"}, &made)
	return first, second, made.Run, made.Endpoint
}

// ownerPages gives the first organization a day of work and returns the pages that its owner sees.
func ownerPages(s *servicetest.Service) []peoplePage {
	s.Helper()
	first, second, run, endpoint := day(s)
	ann := s.SignIn(s.Red.Owner)
	var begun struct {
		ID string `json:"erasure_id"`
	}
	s.Red.Send("old", map[string]any{"trace_id": "old"})
	ann.Call(http.MethodPost, "/v1/console/erasures", map[string]string{"trace_id": "old", "reason": "test_data"}, &begun)
	var shared struct{ URL string }
	ann.Call(http.MethodPost, "/v1/console/shares", map[string]any{"note": "KPMG", "expires_at": time.Now().Add(time.Hour).UTC()}, &shared)
	link := strings.TrimPrefix(shared.URL, s.URL)
	_, after, _ := strings.Cut(ann.Get("/console/members").Body, `href="/console/members/`)
	member, _, _ := strings.Cut(after, `"`)
	agent := "/console/agents/" + s.Red.Agent.AgentID
	return []peoplePage{
		{path: "/console", shows: []string{"Red", "For your vote", second.ID, "Latest events", "Use of the plan"}},
		{path: "/console/start", shows: []string{"Send the first event", "aps hook pre", "Refunds"}},
		{path: "/console/approvals", shows: []string{"acme.refund", second.ID}},
		{"/console/approvals/{approval}", "/console/approvals/" + first.ID, []string{"asks to run", "A-1001"}},
		{"/console/approvals/{approval}", "/console/approvals/" + second.ID, []string{"asks to run", "A person looks at refunds"}},
		{path: "/console/activity", shows: []string{"acme.mail.send", "Denied"}},
		{"/console/acts/{act}", "/console/acts/e1", []string{"denied acme.delete", "A-100e1", "What happened"}},
		{path: "/console/events", shows: []string{"e2", "acme.mail.send"}},
		{"/console/events/{event}", "/console/events/e1", []string{"Event", "acme.delete", "A-100e1"}},
		{path: "/console/erasures", shows: []string{"Erasures", "test data"}},
		{"/console/erasures/{erasure}", "/console/erasures/" + begun.ID, []string{"Erasure", "test data"}},
		{path: "/console/traces", shows: []string{"day"}},
		{"/console/traces/{trace}", "/console/traces/day", []string{"Trace", "acme.orders.read"}},
		{path: "/console/runs", shows: []string{"Invoices"}},
		{"/console/runs/{run}", "/console/runs/" + run, []string{"Run of", "read-mail"}},
		{path: "/console/stats", shows: []string{"Statistics", "acme.delete"}},
		{path: "/console/audit", shows: []string{"Audit", "max"}},
		{path: "/console/evidence", shows: []string{"What a pack proves"}},
		{path: "/console/evidence/coverage", shows: []string{"Did every call go through the policy?"}},
		{path: "/console/evidence/shares", shows: []string{"KPMG"}},
		{"/console/evidence/shares", "/console/evidence/shares?new=1&q=tool:acme.mail.send", []string{"Acts with acme.mail.send", "Whom it is for"}},
		{"/share/{secret}", link, []string{"All acts", "acme.mail.send"}},
		{"/share/{secret}/acts/{act}", link + "/acts/e1", []string{"denied acme.delete", "What happened"}},
		{path: "/console/policies", shows: []string{"Refunds"}},
		{"/console/policies/{policy}", "/console/policies/p", []string{"Refunds", "no-deletion"}},
		{"/console/policies/{policy}/compare", "/console/policies/p/compare?from=1&to=1", []string{"are the same"}},
		{"/console/policies/{policy}/edit", "/console/policies/p/edit", []string{"refunds"}},
		{"/console/policies/{policy}/tests", "/console/policies/p/tests", nil},
		{"/console/policies/{policy}/simulate", "/console/policies/p/simulate", nil},
		{path: "/console/agents", shows: []string{s.Red.Agent.AgentID}},
		{"/console/agents/{agent}", agent, []string{s.Red.Agent.KeyID}},
		{"/console/agents/{agent}/keys/{key}", agent + "/keys/" + s.Red.Agent.KeyID, []string{s.Red.Agent.KeyID}},
		{path: "/console/ingest-keys", shows: []string{"Ingest keys"}},
		{"/console/ingest-keys/{key}", "/console/ingest-keys/" + s.Red.IngestKey.KeyID, []string{"Ingest key"}},
		{path: "/console/members", shows: []string{"max", "kim@red.example"}},
		{"/console/members/{membership}", "/console/members/" + member, []string{"Member"}},
		{path: "/console/webhooks", shows: []string{"Desk"}},
		{"/console/webhooks/{webhook}", "/console/webhooks/" + endpoint, []string{"https://hooks.example/x"}},
		{path: "/console/settings", shows: []string{"Red"}},
		{path: "/console/settings/approvals", shows: []string{"Votes"}},
		{path: "/console/settings/sign-in", shows: []string{"Members sign in by"}},
		{path: "/console/settings/retention", shows: []string{"Retention and legal hold"}},
		{path: "/console/activity/views", shows: []string{"Saved views"}},
		{path: "/console/settings/columns", shows: []string{"Columns"}},
		{path: "/console/settings/tool-keys", shows: []string{"Tool keys"}},
		{path: "/console/settings/stream-export", shows: []string{"Stream export"}},
		{path: "/console/settings/witnesses", shows: []string{"Witnesses"}},
		{path: "/account", shows: []string{s.Red.Owner}},
		{path: "/account/factors", shows: []string{"Passkeys and recovery codes"}},
		{path: "/account/sessions", shows: []string{"Your sessions"}},
		{path: "/account/slack", shows: []string{"Vote in Slack", "Slack users that vote in your name"}},
		{path: "/console/settings/tokens", shows: []string{"Your tokens"}},
		{path: "/confirm-email", shows: []string{"A new e-mail address"}},
	}
}

// Every page for users shows its content without JavaScript, has one first-level heading, and links to no missing page.
// A screen that is not listed here fails the test.
func TestPeoplePagesWithoutScripts(t *testing.T) {
	s := servicetest.New(t)
	stranger := s.Stranger()
	owners := ownerPages(s)
	ann := s.SignIn(s.Red.Owner)
	links := map[string]string{}
	read := func(p *servicetest.Person, page peoplePage) {
		answer := p.Get(page.path)
		answer.Want(t, page.path, http.StatusOK, page.shows...)
		if n := strings.Count(answer.Body, "<h1"); n != 1 {
			t.Errorf("%s has %d headings of the first level", page.path, n)
		}
		for _, after := range strings.Split(answer.Body, ` href="`)[1:] {
			to, _, _ := strings.Cut(after, `"`)
			to, _, _ = strings.Cut(strings.ReplaceAll(to, "&amp;", "&"), "#")
			if strings.HasPrefix(to, "/") && links[to] == "" {
				links[to] = page.path
			}
		}
	}
	for _, page := range entryPages {
		read(stranger, page)
	}
	for _, page := range owners {
		read(ann, page)
	}
	for to, from := range links {
		if got := ann.Get(to).Status; got >= http.StatusBadRequest || got == http.StatusMovedPermanently {
			t.Errorf("%s leads to %s, which is %d", from, to, got)
		}
	}
	for _, screen := range console.Screens(page.NewKit("http://localhost")) {
		if !slices.ContainsFunc(slices.Concat(entryPages, owners), func(p peoplePage) bool {
			return p.pattern == screen.Pattern || p.path == screen.Pattern
		}) {
			t.Errorf("no page of %s is in the lists of this file", screen.Pattern)
		}
	}
}
