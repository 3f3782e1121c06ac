package console_test

import (
	"html"
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// wantMain fails unless the main part of a page contains texts and lacks others.
func wantMain(t *testing.T, what string, got servicetest.Answer, texts []string, others ...string) {
	t.Helper()
	_, body, _ := strings.Cut(got.Body, "<main")
	if got.Status != http.StatusOK {
		t.Errorf("%s: got %d", what, got.Status)
	}
	for _, text := range texts {
		if !strings.Contains(body, text) && !strings.Contains(html.UnescapeString(body), text) {
			t.Errorf("%s: %q is missing in %s", what, text, body)
		}
	}
	for _, text := range others {
		if strings.Contains(body, text) {
			t.Errorf("%s: %q is in %s", what, text, body)
		}
	}
}

// Before the first event of an agent, the page leads to it, without any secret. Afterwards it lists the latest events.
func TestFirstEvent(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	values := []string{"Send the first event", "/console/start", "Latest events"}
	wantMain(t, "an owner", ann.Get("/console"), values)
	for _, role := range []string{"admin", "policy_editor", "approver", "auditor", "member"} {
		wantMain(t, role, s.SignIn(s.Red.Join(role, role)).Get("/console"), values)
	}
	hostile := `<img src=x onerror=alert(1)>`
	s.Red.Send("evt-"+strings.Repeat("x", 40), map[string]any{"action_kind": "note", "actor_principal": hostile})
	wantMain(t, "after the first event", ann.Get("/console"), []string{"/console/events/evt-xxx", "the service", "Use of the plan", "/log/red", s.Red.Origin},
		"Send the first event", "<img")
	wantMain(t, "the other organization", bob.Get("/console"), []string{"Send the first event", "/log/blue"}, "evt-xxx", s.Red.Origin)
}

// Approvals for the reader's vote come before the others, and only approvers have any.
func TestApprovals(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	auditor := s.SignIn(s.Red.Join("eve", "auditor"))
	s.Red.Join("max", "approver") // the second approver
	wantMain(t, "none", ann.Get("/console"), []string{"No approval waits."})
	ann.Call(http.MethodPost, "/v1/console/policies", map[string]any{"policy_id": "p", "name": "P", "rules": []any{map[string]any{
		"rule_id": "r", "tool": "acme.**", "decision": "allow_with_obligation", "obligations": []any{map[string]any{"type": "human_approval", "approvals": 2}}}}}, nil)
	ann.Call(http.MethodPost, "/v1/console/policies/p/activate", nil, nil)
	first, second := s.Red.Ask(map[string]any{"trace_id": "a"}), s.Red.Ask(map[string]any{"trace_id": "b"})
	ann.Post("/console/approvals/"+first.ID, "do", "approve", "action_digest", first.ActionDigest)
	page := ann.Get("/console")
	wantMain(t, "an owner", page, []string{"For your vote", "For others", first.ID, second.ID})
	before, after, _ := strings.Cut(page.Body, "For others")
	after, _, _ = strings.Cut(after, "</section>")
	if !strings.Contains(before, second.ID) || !strings.Contains(after, first.ID) || strings.Contains(after, second.ID) {
		t.Errorf("the order is wrong: %s", page.Body)
	}
	wantMain(t, "an auditor", auditor.Get("/console"), []string{first.ID, second.ID, "All approvals"}, "For your vote")
	wantMain(t, "the other organization", s.SignIn(s.Blue.Owner).Get("/console"), []string{"No approval waits."}, first.ID)
}

// The page reports receivers that are off and limits that are nearly reached.
func TestFaults(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	wantMain(t, "none", ann.Get("/console"), nil, "To look at")
	var made struct {
		ID string `json:"endpoint_id"`
	}
	ann.Call(http.MethodPost, "/v1/console/webhooks", map[string]any{"url": "https://hooks.example/x", "events": []string{"approval.*"}, "name": "Desk <b>"}, &made)
	ann.Call(http.MethodPatch, "/v1/console/webhooks/"+made.ID, map[string]any{"active": false}, nil)
	s.Limit(s.Red, map[string]any{"agents": 1, "policies": 2})
	wantMain(t, "an endpoint", ann.Get("/console"), []string{"To look at", "A webhook receiver is off", `/console/webhooks/` + made.ID, "Desk &lt;b&gt;",
		"The plan is nearly used up", "agents", "nearly reached"}, "policies</bdi></a>")
	wantMain(t, "the other organization", s.SignIn(s.Blue.Owner).Get("/console"), nil, "To look at")
}

// The start page shows the first event and its proof without a reload.
func TestStartPageInChromium(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	b := s.Browser()
	b.SignIn(s.Red.Owner)
	b.Visit("/console/start")
	b.AwaitText("Waiting for the first event")
	s.Red.Send("the-first", nil)
	b.AwaitText("The first event is here:")
	b.Must(`while (document.getElementById("first").dataset.done !== "yes") await new Promise((next) => setTimeout(next, 5));`, nil)
	if got := b.Text("#outcome"); !strings.HasPrefix(got, "Proved") {
		t.Errorf("got %q", got)
	}
	if got := b.Text("#event"); got != "the-first" {
		t.Errorf("got %q", got)
	}
	b.WantQuiet()
}
