package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentledger/agentledger/client"
)

// desk is aps mcp approvals, as started by an MCP client.
type desk struct {
	t       *testing.T
	session *mcp.ClientSession
}

// openDesk starts the real program. home is the approver's folder of settings.
func openDesk(t *testing.T, s *timed, home string, environment ...string) *desk {
	t.Helper()
	command := exec.Command(filepath.Join(programs, "aps"), "mcp", "approvals")
	command.Env = append(os.Environ(), append(environment, "APS_URL="+s.server.mainURL(), "XDG_CONFIG_HOME="+home)...)
	command.Stderr = t.Output()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "desk", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: command}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return &desk{t, session}
}

// call calls a tool and returns its text.
func (d *desk) call(tool string, arguments map[string]any) (text string, failed bool) {
	d.t.Helper()
	r, err := d.session.CallTool(d.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		d.t.Fatal(err)
	}
	return r.Content[0].(*mcp.TextContent).Text, r.IsError
}

// vote shows an approval and votes on what was shown, as a client must.
func (d *desk) vote(approval, vote, comment, code string) (text string, failed bool) {
	d.t.Helper()
	shown, failed := d.call("show_approval", map[string]any{"approval_id": approval})
	if failed {
		return shown, true
	}
	var question struct {
		Digest string `json:"action_digest"`
	}
	if err := json.Unmarshal([]byte(shown), &question); err != nil {
		d.t.Fatal(err)
	}
	arguments := map[string]any{"approval_id": approval, "vote": vote, "action_digest": question.Digest}
	if comment != "" {
		arguments["comment"], arguments["reason_code"] = comment, code
	}
	return d.call("vote_on_approval", arguments)
}

// login signs an approver in as in a terminal.
func login(t *testing.T, s *timed, home, email, password string) {
	t.Helper()
	if out, exit := commandWith(t, []string{"APS_URL=" + s.server.mainURL(), "APS_EMAIL=" + email, "APS_PASSWORD=" + password, "XDG_CONFIG_HOME=" + home},
		"aps", "login"); exit != 0 {
		t.Fatal(out)
	}
}

// Approvers of two organizations decide through aps mcp approvals, with sessions of aps login and with tokens. The
// service rejects what it rejects elsewhere, and the program explains what to do.
func TestApprovalsByMCP(t *testing.T) {
	s := newTimed(t)
	red, blue := s.found("red", 0), s.found("blue", 0)
	p := &process{t: t, main: s.server.mainURL(), identity: s.server.identityURL()}
	owner := newColleague(t, p)
	owner.org = red.org.OrganizationID.String()
	owner.call("POST", "/v1/id/auth/login", object{"email": "ops@red.example", "password": testPassword}, 200)
	owner.invite(p, "bob", "approver")
	owner.invite(p, "erin", "auditor")
	homes := map[string]string{}
	for _, who := range []string{"bob", "erin"} {
		homes[who] = t.TempDir()
		login(t, s, homes[who], who+"@red.example", "a long password of "+who)
	}
	homes["blue"] = t.TempDir()
	login(t, s, homes["blue"], "ops@blue.example", testPassword)
	ask := func(r *refunder, principal string) string {
		question := r.question()
		question.Principal, question.Payload = principal, map[string]any{"amount": 7, "note": "for " + principal + "\x1b[2J"}
		a, err := r.client.AskApproval(t.Context(), question)
		if err != nil {
			t.Fatal(err)
		}
		return a.ID
	}
	became := func(approval string) client.Approval {
		a, err := red.client.GetApproval(t.Context(), approval)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	token := owner.call("POST", "/v1/console/tokens", object{"name": "queue", "role": "approver",
		"expires_at": time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")}, 201).text("token")
	desks := map[string]*desk{
		"bob": openDesk(t, s, homes["bob"]), "erin": openDesk(t, s, homes["erin"]), "blue": openDesk(t, s, homes["blue"]),
		"token":   openDesk(t, s, t.TempDir(), "APS_CONSOLE_TOKEN="+token),
		"address": openDesk(t, s, t.TempDir(), "APS_EMAIL=ops@red.example", "APS_PASSWORD="+testPassword),
		"wrong":   openDesk(t, s, t.TempDir(), "APS_CONSOLE_TOKEN=alt_wrong"),
	}

	customers, own, theirs := ask(red, "customer"), ask(red, "bob@red.example"), ask(blue, "customer")
	for who, want := range map[string][]string{"bob": {customers, own}, "erin": {customers, own}, "token": {customers, own}, "address": {customers, own}, "blue": {theirs}} {
		listed, failed := desks[who].call("list_approvals", map[string]any{})
		if failed || strings.Count(listed, `"approval_id"`) != len(want) {
			t.Errorf("%s: list: got %s", who, listed)
		}
		for _, approval := range want {
			shown, failed := desks[who].call("show_approval", map[string]any{"approval_id": approval})
			if failed || !strings.Contains(listed, approval) || !strings.Contains(shown, `"tool_name":"acme.refund"`) || strings.Contains(shown, "\x1b") {
				t.Errorf("%s: show: got %s", who, shown)
			}
			if payload := `\u001b[2J`; strings.Contains(shown, payload) == (who == "erin") && who == "bob" {
				t.Errorf("%s: show: no payload in %s", who, shown)
			}
		}
	}
	for name, tc := range map[string]struct{ who, approval, want string }{
		"another organization": {"blue", customers, "404 Not found"},
		"an auditor":           {"erin", customers, "403"},
		"a token":              {"token", customers, "403"},
		"a wrong token":        {"wrong", customers, "401"},
		"the own request":      {"bob", own, "403"},
		"no approval":          {"bob", "apr_nothing", "404 Not found"},
	} {
		if text, failed := desks[tc.who].vote(tc.approval, "approve", "", ""); !failed || !strings.Contains(text, tc.want) {
			t.Errorf("%s: got %q, want %s", name, text, tc.want)
		}
	}
	if a := became(own); a.Status != client.ApprovalPending {
		t.Errorf("the approver's own request: got %+v", a)
	}
	if text, failed := desks["bob"].vote(customers, "approve", "fine", "checked"); failed || !strings.Contains(text, `"status":"approved"`) {
		t.Errorf("approve: got %q", text)
	}
	if text, failed := desks["bob"].vote(customers, "deny", "", ""); !failed || !strings.Contains(text, "409 The approval is approved") {
		t.Errorf("a second vote: got %q", text)
	}
	if text, failed := desks["address"].vote(own, "deny", "not this month", "over_budget"); failed || !strings.Contains(text, `"status":"denied"`) {
		t.Errorf("deny: got %q", text)
	}
	if a := became(customers); a.Status != client.ApprovalApproved || a.Comment != "fine" || a.ReasonCode != "checked" {
		t.Errorf("the agent reads %+v", a)
	}
	if a := became(own); a.Status != client.ApprovalDenied || a.Comment != "not this month" || a.ReasonCode != "over_budget" {
		t.Errorf("the agent reads %+v", a)
	}

	// The sign-in becomes old. After another sign-in in a terminal, the running program continues with it.
	s.machine.Pass(16 * time.Minute)
	late := ask(red, "customer")
	if text, failed := desks["bob"].vote(late, "approve", "", ""); !failed || !strings.Contains(text, "401 Confirm your identity again: step up") || !strings.Contains(text, "aps login") {
		t.Errorf("an old sign-in: got %q", text)
	}
	login(t, s, homes["bob"], "bob@red.example", "a long password of bob")
	if text, failed := desks["bob"].vote(late, "approve", "", ""); failed || !strings.Contains(text, `"status":"approved"`) {
		t.Errorf("after another sign-in: got %q", text)
	}
	if out, exit := commandWith(t, []string{"APS_URL=" + s.server.mainURL(), "XDG_CONFIG_HOME=" + homes["bob"]}, "aps", "logout"); exit != 0 {
		t.Error(out)
	}
	if text, failed := desks["bob"].call("list_approvals", map[string]any{}); !failed || !strings.Contains(text, "not signed in: run aps login") {
		t.Errorf("signed out: got %q", text)
	}
	if out, exit := commandWith(t, []string{"APS_URL=" + s.server.mainURL(), "XDG_CONFIG_HOME=" + t.TempDir()}, "aps", "mcp", "approvals"); exit != 2 || !strings.Contains(out, "not signed in: run aps login") {
		t.Errorf("not signed in: status %d, %s", exit, out)
	}
}
