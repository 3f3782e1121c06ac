package console_test

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// Traces are listed, and each is a tree nested by the parents of its events.
func TestTraces(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	activateRefunds(ann)
	day(s)
	s.Red.Send("single", map[string]any{"trace_id": "lonely"})
	page := ann.Get("/console/traces?signer=agent")
	page.Want(t, "traces", http.StatusOK, `<a href="/console/traces/day">`, `<a href="/console/traces/lonely">`, "4 allow", "1 deny", "format=csv")
	ann.Get("/console/traces?decision=deny").WantNone(t, "those with a denial", "/console/traces/lonely")
	ann.Get("/console/traces?from=x").Want(t, "a wrong time", http.StatusUnprocessableEntity, "from must be")
	bob.Get("/console/traces").WantNone(t, "the other organization", "lonely")

	page = ann.Get("/console/traces/day")
	page.Want(t, "a trace", http.StatusOK, "5 events", "acme.mail.send", `<svg class="push"`, "/console/events?trace_id=day", "/console/evidence?trace_id=day", "/console/erasures?by=trace_id")
	_, tree, _ := strings.Cut(page.Body, `class="nodes"`)
	outline := regexp.MustCompile(`<ul>|</ul>|/console/events/(e[0-9])`).ReplaceAllStringFunc(tree, func(found string) string { return "\n" + found + "\n" })
	var got []string
	for line := range strings.Lines(outline) {
		line = strings.TrimSpace(line)
		if line == "<ul>" || line == "</ul>" || strings.HasPrefix(line, "/console/events/e") {
			got = append(got, strings.TrimPrefix(line, "/console/events/"))
		}
	}
	if want := "<ul> e0 <ul> e1 <ul> e3 e4 </ul> e2 </ul> </ul>"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	bob.Get("/console/traces/day").WantNone(t, "the other organization's trace", "acme.orders", "acme.delete")
	bob.Get("/console/traces/lonely").Want(t, "a trace that the other organization has not", http.StatusNotFound)
	s.SignIn(s.Red.Join("carl", "member")).Get("/console/traces/day").WantNone(t, "a member", "Erase this trace", "canary")
}

// Counts of acts are shown as bars and numbers, and so are their approvals.
func TestStats(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	activateRefunds(ann)
	day(s)
	page := ann.Get("/console/stats")
	page.WantNone(t, "counts", "5 acts")
	page.Want(t, "counts", http.StatusOK, `Acts</span><span class="big">5</span>`, "a column is 6 hours", `requested</span><span class="big">0</span>`, "no-deletion",
		`<bdi>acme.orders.read</bdi></a></td><td class="num">2</td>`, `<bdi>denied</bdi></a></td><td class="num">1</td>`, "allow", `<svg class="h140"`, s.Red.Agent.AgentID)
	link := regexp.MustCompile(`<a href="([^"]+)"><bdi>acme.delete</bdi></a>`).FindStringSubmatch(page.Body)
	if got := listedActs(ann.Get(html.UnescapeString(link[1])).Body); got != "e3" {
		t.Errorf("acts of a bar: got %q", got)
	}
	ann.Get("/console/stats?from=2026-01-01&to=2026-01-02").Want(t, "an empty range", http.StatusOK, `Acts</span><span class="big">0</span>`)
	ann.Get("/console/stats?to=never").Want(t, "a wrong time", http.StatusUnprocessableEntity, "to must be", `value="never"`)
	bob.Get("/console/stats").WantNone(t, "the other organization", "acme.orders", "no-deletion")
	s.SignIn(s.Red.Join("carl", "member")).Get("/console/stats").Want(t, "a member", http.StatusOK, "acme.delete")
}

// The audit list is for owners, admins and auditors.
func TestAudit(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	activateRefunds(ann)
	ann.Get("/console/audit").Want(t, "acts", http.StatusOK, "activated policy p version 1", "ann@red.example", "ledger_policy_activated", "format=ndjson")
	page := ann.Get("/console/audit?kind=ledger_policy_activated&order=oldest")
	page.Want(t, "one kind", http.StatusOK, "activated policy p")
	page.WantNone(t, "one kind", "ledger_agent_created")
	ann.Get("/console/audit?kind=tool_call").Want(t, "a wrong kind", http.StatusUnprocessableEntity, "kind must begin with ledger_")
	ann.Get("/console/audit?actor=nobody").Want(t, "nobody's acts", http.StatusOK, "There is no act like this")
	bob.Get("/console/audit").WantNone(t, "the other organization", "activated policy")
	for role, reads := range map[string]bool{"admin": true, "auditor": true, "approver": false, "policy_editor": false, "member": false} {
		page := s.SignIn(s.Red.Join(role, role)).Get("/console/audit")
		if reads {
			page.Want(t, role, http.StatusOK, "activated policy")
		} else {
			page.Want(t, role, http.StatusForbidden, "Your role does not allow this")
			page.WantNone(t, role, "activated policy")
		}
	}
}

// The steps of a run are listed on pages.
func TestRuns(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	ann.Call(http.MethodPatch, "/v1/console/agents/"+s.Red.Agent.AgentID, map[string]bool{"bridge": true}, nil)
	var run struct {
		ID string `json:"run_id"`
	}
	s.Red.Ingest(http.MethodPost, "/workflows/runs", map[string]any{"workflow": map[string]any{"name": "Invoices <1>", "version": "7", "tool": "n8n"}, "agent_id": s.Red.Agent.AgentID, "planned_steps": 3,
		"external_run_id": "x-1"}, &run)
	ann.Get("/console/runs").Want(t, "runs", http.StatusOK, "Invoices <1>", "running", "/console/runs/"+run.ID, "0 of 3")
	s.Red.Ingest(http.MethodPost, "/workflows/runs/"+run.ID+"/steps", map[string]any{"step_key": "read-mail", "status": "succeeded", "tool_name": "acme.mail.read"}, nil)
	s.Red.Ingest(http.MethodPost, "/workflows/runs/"+run.ID+"/complete", map[string]any{"status": "failed", "error": "no <answer>"}, nil)
	page := ann.Get("/console/runs/" + run.ID)
	page.Want(t, "a run", http.StatusOK, "Run of ", "no <answer>", "read-mail", "acme.mail.read", "1 recorded, 3 planned", "2 missing", "x-1", "Root over its events")
	page.WantNone(t, "a run", "<answer>\x00")
	ann.Get("/console/runs?status=failed").Want(t, "failed ones", http.StatusOK, "/console/runs/"+run.ID)
	ann.Get("/console/runs?status=running").WantNone(t, "running ones", "/console/runs/"+run.ID)
	ann.Get("/console/runs?status=x").Want(t, "a wrong state", http.StatusUnprocessableEntity, "status must be running, succeeded")
	bob.Get("/console/runs").WantNone(t, "the other organization", "Invoices")
	bob.Get("/console/runs/"+run.ID).Want(t, "the other organization's run", http.StatusNotFound)
	step := regexp.MustCompile(`<a href="(/console/events/[^"]+)"><bdi>read-mail`).FindStringSubmatch(page.Body)
	ann.Get(step[1]).Want(t, "a step", http.StatusOK, "/console/runs/"+run.ID, "the service, for a tool without a key")
}
