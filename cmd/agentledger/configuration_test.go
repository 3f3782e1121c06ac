package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// configured is an organization that a folder declares.
type configured struct {
	*process
	t      *testing.T
	org    foundedOrganization
	admin  *operator
	folder string
	url    string
	token  string
}

const pagerURL = "https://pager.example/hooks/a-secret-path"

// newConfigured founds an organization with a token of a role, and copies the example with keys for it.
func newConfigured(t *testing.T, p *process, slug, role string) *configured {
	t.Helper()
	c := &configured{process: p, t: t, org: p.found(t.Context(), slug, nil), folder: t.TempDir(), url: p.main}
	var err error
	if c.admin, err = newOperator(p.main, p.identity); err != nil {
		t.Fatal(err)
	}
	if err := c.admin.signIn(t.Context(), "ops@"+slug+".example", testPassword); err != nil {
		t.Fatal(err)
	}
	c.token = c.newToken(role)
	if err := os.CopyFS(c.folder, os.DirFS("../../examples/configuration")); err != nil {
		t.Fatal(err)
	}
	agents := c.path("organization/agents.json")
	text := strings.ReplaceAll(c.read(agents), `"acme-`, `"`+slug+"-") // agents have unique names in the service
	for _, agent := range []string{slug + "-support-bot", slug + "-trial-bot"} {
		out, exit := command(t, "aps", "keygen", "--proof", "--json", "--org", c.org.OrganizationID.String(), "--agent", agent, "--key-id", agent+"-1")
		var key map[string]string
		if err := json.Unmarshal([]byte(out), &key); err != nil || exit != 0 {
			t.Fatalf("%s, %v", out, err)
		}
		text = strings.Replace(text, "PUBLIC_KEY of aps keygen --proof", key["public_key_b64"], 1)
		text = strings.Replace(text, "PROOF of aps keygen --proof", key["proof_b64"], 1)
	}
	c.write("organization/agents.json", text)
	return c
}

func (c *configured) newToken(role string) string {
	c.t.Helper()
	var made struct {
		Token string `json:"token"`
	}
	err := c.admin.callConsole(c.t.Context(), "POST", "/tokens", map[string]any{"name": "ci", "role": role,
		"expires_at": time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")}, &made)
	if err != nil {
		c.t.Fatal(err)
	}
	return made.Token
}

func (c *configured) path(name string) string { return filepath.Join(c.folder, name) }

func (c *configured) read(file string) string {
	c.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

func (c *configured) write(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(c.path(name), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// replace changes a file that contains a text.
func (c *configured) replace(name, text, by string) {
	c.t.Helper()
	before := c.read(c.path(name))
	if !strings.Contains(before, text) {
		c.t.Fatalf("%s has no %s", name, text)
	}
	c.write(name, strings.Replace(before, text, by, 1))
}

func (c *configured) environment() []string {
	return []string{"APS_URL=" + c.url, "APS_ID_URL=" + c.identity, "APS_CONSOLE_TOKEN=" + c.token, "PAGER_URL=" + pagerURL, "XDG_CONFIG_HOME=" + c.folder}
}

// want runs aps apply and compares the exit code and the output, in which lines are joined fields.
func (c *configured) want(what string, exit int, want []string, args ...string) {
	c.t.Helper()
	out, got := commandWith(c.t, c.environment(), "aps", append([]string{"apply"}, args...)...)
	if got != exit {
		c.t.Errorf("%s: exit code %d, want %d: %s", what, got, exit, out)
	}
	if joined := strings.Join(want, "\n"); !strings.HasPrefix(out, joined) {
		c.t.Errorf("%s: got\n%s\nwant\n%s", what, out, joined)
	}
	if strings.Contains(out, "a-secret-path") || strings.Contains(out, "whsec_") || strings.Contains(out, c.token) && c.token != "" {
		c.t.Errorf("%s: a secret in %s", what, out)
	}
}

func (c *configured) events() uint64 {
	c.t.Helper()
	l, err := newPublicLog(c.main, c.org)
	if err != nil {
		c.t.Fatal(err)
	}
	head, err := l.fetchHead(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return uint64(head.Size)
}

// The example is planned, applied, applied again, changed by the files and by a person, and applied again; the other
// organization stays as it was.
func TestConfigurationAsCode(t *testing.T) {
	p := startProcess(t, t.TempDir())
	red, blue := newConfigured(t, p, "red", "admin"), newConfigured(t, p, "blue", "admin")
	before := blue.events()
	dir, secrets := red.path("organization"), red.path("secrets")
	all := []string{
		"agent  red-support-bot  create  key red-support-bot-1",
		"agent  red-trial-bot  create  key red-trial-bot-1",
		"agent  red-trial-bot  change  active: false, was true",
		"webhook  pager  create  to https://pager.example",
		"policy  closed  create  0 rules; 0 tests",
		"policy  shop  create  2 rules; 3 tests",
		"policy  shop  activate  ",
	}
	first := "agent  " + string(red.org.Agent.AgentID) + "  not in the files  active: true"
	red.want("plan", 3, append(all[:len(all):len(all)], first), "--plan", dir)
	if n := red.events(); n != 1 { // the token
		t.Errorf("after the plan: %d events", n)
	}
	red.want("apply", 0, append(all[:len(all):len(all)], "7 changes of red\n"), "--secrets", secrets, dir)
	if text := red.read(secrets); !strings.Contains(text, `"secret":"whsec_`) || strings.Count(text, "\n") != 1 {
		t.Errorf("secrets: got %s", text)
	}
	if info, err := os.Stat(secrets); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("secrets: %v, %v", info, err)
	}
	size := red.events()
	red.want("again", 0, []string{"0 changes of red\n"}, dir)
	red.want("plan again", 0, []string{first + "\n"}, "--plan", dir)
	if n := red.events(); n != size {
		t.Errorf("the second run made %d events", n-size)
	}

	// Changes of the files.
	red.replace("organization/policies/shop.json", "> 100", "> 50")
	red.replace("organization/agents.json", `"red-trial-bot-1",`, `"red-trial-bot-1", "status": "retired",`)
	red.replace("organization/webhooks.json", `"decision.denied"`, `"run.failed"`)
	changes := []string{
		"key  red-trial-bot/red-trial-bot-1  retire  ",
		`webhook  pager  change  events: "approval.pending run.failed", was "approval.pending decision.denied"`,
		"policy  shop  change  rule refunds changed",
		"policy  shop  activate  instead of shop version 1",
	}
	red.want("changed files", 3, changes, "--plan", dir)
	red.want("changed files", 0, append(changes, "4 changes of red\n"), dir)

	// Changes by a person: a draft after the active version stays until the file changes, and a switched-off agent comes back only
	// if the file says so.
	ctx := t.Context()
	must := func(method, path string, body any) {
		t.Helper()
		if err := red.admin.callConsole(ctx, method, path, body, nil); err != nil {
			t.Fatal(err)
		}
	}
	must("PATCH", "/policies/shop", map[string]any{"name": "Shop, next"})
	must("PATCH", "/agents/red-support-bot", map[string]any{"active": false, "display_name": "Other"})
	must("POST", "/policies/closed/activate", map[string]any{})
	red.want("changed by a person", 0, []string{
		`agent  red-support-bot  change  display_name: "Support", was "Other"`,
		"policy  shop  change  name changed; replaces the draft, version 3",
		"policy  shop  activate  instead of closed version 1",
		"3 changes of red\n",
	}, dir)
	must("PATCH", "/policies/shop", map[string]any{"name": "Shop, next"})
	red.want("a draft", 0, []string{"0 changes of red\n"}, dir)

	// What can't be is named before anything is changed.
	size = red.events()
	red.replace("organization/agents.json", `"status": "retired",`, "")
	red.want("a retired key", 2, []string{"aps: agents.json: red-trial-bot: key red-trial-bot-1 is retired, which is final"}, dir)
	red.replace("organization/agents.json", `"red-trial-bot-1",`, `"red-trial-bot-1", "status": "revoked",`)
	red.replace("organization/policies/shop.json", `"allow"`, `"deny"`)
	red.want("a failing test", 1, []string{"aps: " + dir + "/policies/shop.json: 409 1 of 3 tests do not pass"}, dir)
	red.replace("organization/policies/shop.json", `{"type": "human_approval"}`, `{"type": "human_approval", "approvals": 9}`)
	red.replace("organization/policies/shop.json", `"expect": {"decision": "deny"}`, `"expect": {"decision": "allow"}`)
	red.want("too few members", 1, []string{"aps: " + dir + "/policies/shop.json: 409 The rule refunds requires 9 approvals"}, dir)
	red.replace("organization/policies/shop.json", `"approvals": 9`, `"approvals": 1`)
	red.token = red.newToken("policy_editor")
	red.want("a role", 1, []string{`aps: 403 nothing was changed, because your role lacks "manage" for webhooks.json`}, dir)
	if err := os.Remove(red.path("organization/webhooks.json")); err != nil {
		t.Fatal(err)
	}
	red.want("another role", 1, []string{`aps: 403 nothing was changed, because your role lacks "revoke keys" for key red-trial-bot/red-trial-bot-1`}, dir)
	red.token = "alt_wrong"
	red.want("a wrong token", 1, []string{"aps: read the organization: 401 Not signed in"}, dir)
	red.token = red.newToken("admin")
	red.want("people", 1, []string{"aps: 403 members.json: a token can't read or change members"}, red.path("people"))
	if n := red.events(); n != size+2 { // the tokens
		t.Errorf("refused runs made %d events", n-size-2)
	}
	red.want("at last", 0, []string{"key  red-trial-bot/red-trial-bot-1  revoke  \n1 change of red\n"}, dir)

	// The other organization.
	if n := blue.events(); n != before {
		t.Errorf("blue: %d events, had %d", n, before)
	}
	proof := regexp.MustCompile(`"proof_b64": "([^"]+)"`)
	blue.replace("organization/agents.json", proof.FindStringSubmatch(blue.read(blue.path("organization/agents.json")))[1],
		proof.FindStringSubmatch(red.read(red.path("organization/agents.json")))[1])
	blue.want("a proof of red", 1, []string{"aps: agent blue-support-bot, create, after 0 changes: 422 proof_b64 does not prove possession of the key"},
		blue.path("organization"))
	blue.want("agents of red", 2, []string{"aps: agents.json: red-trial-bot: a new agent needs an active key"}, dir)
	if n := blue.events(); n != before {
		t.Errorf("blue: %d events after refusals, had %d", n, before)
	}
}

// Members are changed by a person, who is signed in.
func TestConfigurationOfMembers(t *testing.T) {
	p := startProcess(t, t.TempDir())
	red := newConfigured(t, p, "red", "admin")
	newConfigured(t, p, "blue", "admin")
	red.token = ""
	if out, exit := commandWith(t, append(red.environment(), "APS_EMAIL=ops@red.example", "APS_PASSWORD="+testPassword), "aps", "login"); exit != 0 {
		t.Fatal(out)
	}
	dir, secrets := red.path("people"), red.path("links")
	all := []string{`member  ann@acme.example  invite  role: "admin"`, `member  bob@acme.example  invite  role: "approver"`}
	red.want("plan", 3, append(all[:2:2], "member  ops@red.example  not in the files  owner"), "--plan", dir)
	red.want("apply", 0, append(all[:2:2], "2 changes of red\n"), "--secrets", secrets, dir)
	red.want("again", 0, []string{"0 changes of red\n"}, dir)
	links := regexp.MustCompile(`#token=([^"]+)`).FindAllStringSubmatch(red.read(secrets), -1)
	if len(links) != 2 {
		t.Fatalf("links: %v", links)
	}
	ann, err := newOperator(p.main, p.identity)
	if err == nil {
		err = ann.callJSON(t.Context(), "POST", p.identity+"/v1/id/invitations/accept", nil,
			map[string]any{"token": links[0][1], "display_name": "Ann", "password": "a long password of ann"}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	red.replace("people/members.json", `"role": "admin"`, `"role": "auditor", "suspended": true`)
	red.replace("people/members.json", `"role": "approver"`, `"role": "member"`)
	changes := []string{
		`member  ann@acme.example  change  role: "auditor", was "admin"; suspended: true, was false`,
		`member  bob@acme.example  invite  role: "member", was "approver"`,
	}
	red.want("changed", 3, changes, "--plan", dir)
	red.want("changed", 0, append(changes, "2 changes of red\n"), dir)
	red.want("again", 0, []string{"0 changes of red\n"}, dir)
	red.write("people/members.json", `{"members":[{"email":"ops@red.example","role":"admin"}]}`)
	red.want("the last owner", 1, []string{"aps: member ops@red.example, change, after 0 changes: 4"}, dir)
}

// An apply that ends at any of its changes, before or after the service made it, is completed by the next one.
func TestConfigurationInterrupted(t *testing.T) {
	p := startProcess(t, t.TempDir())
	target, err := url.Parse(p.main)
	if err != nil {
		t.Fatal(err)
	}
	var left atomic.Int64 // changes until the connection breaks
	var answered atomic.Bool
	forward := httputil.NewSingleHostReverseProxy(target)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "/check") || left.Add(-1) != 0 {
			forward.ServeHTTP(w, r)
			return
		}
		if answered.Load() {
			forward.ServeHTTP(httptest.NewRecorder(), r)
		}
		panic(http.ErrAbortHandler)
	}))
	defer proxy.Close()
	for at := 1; at <= 7; at++ {
		late := at%2 == 0
		c := newConfigured(t, p, fmt.Sprintf("org-%v-%d", late, at), "admin")
		c.url = proxy.URL
		answered.Store(late)
		left.Store(int64(at))
		out, exit := commandWith(t, c.environment(), "aps", "apply", c.path("organization"))
		if exit != 2 || !strings.Contains(out, fmt.Sprintf("after %d change", at-1)) {
			t.Errorf("late %v, change %d: got %d, %s", late, at, exit, out)
		}
		out, exit = commandWith(t, c.environment(), "aps", "apply", c.path("organization"))
		made := 7 - at + 1
		if late {
			made--
		}
		if exit != 0 || !strings.Contains(out, fmt.Sprintf("%d change", made)) {
			t.Errorf("late %v, change %d, again: got %d, %s", late, at, exit, out)
		}
		c.want("complete", 0, []string{"0 changes of "}, c.path("organization"))
	}
}

// A change by somebody else between the comparison and the change is refused, and one after it is noticed.
func TestConfigurationConcurrently(t *testing.T) {
	p := startProcess(t, t.TempDir())
	red := newConfigured(t, p, "red", "admin")
	dir := red.path("organization")
	red.want("apply", 0, []string{"agent  "}, dir)
	target, err := url.Parse(p.main)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	for _, c := range []struct {
		what, file, from, to string
		path, other          string // the call of apply, and the body of the other one
		first                bool   // the other call is made before
		exit                 int
		want                 string
	}{
		{"a draft before", "organization/policies/shop.json", "> 100", "> 50", "/policies/shop", `{"name":"Other"}`, true, 1, "The policy was changed in the meantime"},
		{"an agent after", "organization/agents.json", `"Support"`, `"Help"`, "/agents/red-support-bot", `{"display_name":"Other"}`, false, 1,
			"agent red-support-bot was changed by somebody else in the meantime: run the command again"},
	} {
		var once atomic.Bool
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			between := r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, c.path) && once.CompareAndSwap(false, true)
			change := func() {
				if err := red.admin.callConsole(t.Context(), "PATCH", c.path, json.RawMessage(c.other), nil); err != nil {
					t.Error(err)
				}
			}
			if between && c.first {
				change()
			}
			forward.ServeHTTP(w, r)
			if between && !c.first {
				change()
			}
		}))
		red.replace(c.file, c.from, c.to)
		red.url = proxy.URL
		if out, exit := commandWith(t, red.environment(), "aps", "apply", dir); exit != c.exit || !strings.Contains(out, c.want) {
			t.Errorf("%s: got %d, %s", c.what, exit, out)
		}
		if out, exit := commandWith(t, red.environment(), "aps", "apply", dir); exit != 0 {
			t.Errorf("%s, again: got %d, %s", c.what, exit, out)
		}
		red.want(c.what+", at last", 0, []string{"0 changes of red"}, dir)
		proxy.Close()
	}
}

// With the two-person rule everything but the activation is done, and another account's token completes it.
func TestConfigurationByTwo(t *testing.T) {
	p := startProcess(t, t.TempDir())
	red := newConfigured(t, p, "red", "admin")
	dir := red.path("organization")
	if err := red.admin.callConsole(t.Context(), "PATCH", "/organization", map[string]any{"two_person_policy": true}, nil); err != nil {
		t.Fatal(err)
	}
	rule := "policy  shop  activate  by another account, because of the two-person rule"
	if out, exit := commandWith(t, red.environment(), "aps", "apply", "--plan", dir); exit != 3 || !strings.Contains(out, rule) {
		t.Errorf("plan: got %d, %s", exit, out)
	}
	for range 2 {
		if out, exit := commandWith(t, red.environment(), "aps", "apply", dir); exit != 1 || !strings.Contains(out, "another person") {
			t.Errorf("alone: got %d, %s", exit, out)
		}
	}
	var invited struct {
		URL string `json:"url"`
	}
	members := p.identity + "/v1/id/orgs/" + red.org.OrganizationID.String()
	err := red.admin.callJSON(t.Context(), "POST", members+"/invitations", nil, map[string]any{"email": "ann@red.example", "role": "policy_editor"}, &invited)
	ann, failed := newOperator(p.main, p.identity)
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	_, token, _ := strings.Cut(invited.URL, "#token=")
	if err := ann.callJSON(t.Context(), "POST", p.identity+"/v1/id/invitations/accept", nil,
		map[string]any{"token": token, "display_name": "Ann", "password": "a long password of ann"}, nil); err != nil {
		t.Fatal(err)
	}
	red.admin = ann
	red.token = red.newToken("policy_editor")
	if err := os.Remove(red.path("organization/webhooks.json")); err != nil {
		t.Fatal(err)
	}
	red.want("the second account", 0, []string{"policy  shop  activate  ", "1 change of red"}, dir)
}

// The steps of the workflow that run aps, in their order, on an organization whose policy a pull request changes.
func TestConfigurationWorkflow(t *testing.T) {
	p := startProcess(t, t.TempDir())
	red := newConfigured(t, p, "red", "admin")
	text := red.read("../../examples/configuration/workflow.yaml")
	steps := regexp.MustCompile(`(?m)^        run: (aps .*)$`).FindAllStringSubmatch(text, -1)
	if len(steps) != 3 {
		t.Fatalf("steps: %v", steps)
	}
	run := func(push bool) (outputs []string, failed bool) {
		for i, step := range steps {
			if i == 2 && !push {
				continue
			}
			cmd := exec.Command("bash", "-e", "-c", step[1])
			cmd.Dir = red.folder
			cmd.Env = append(append(os.Environ(), red.environment()...), "PATH="+programs+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if outputs = append(outputs, string(out)); err != nil {
				return outputs, true
			}
		}
		return outputs, false
	}
	for _, c := range []struct {
		what   string
		push   bool
		change [2]string
		failed bool
		last   string
	}{
		{"a pull request", false, [2]string{}, false, "policy  shop  activate"},
		{"the merge", true, [2]string{}, false, "7 changes of red"},
		{"another request", false, [2]string{"> 100", "> 50"}, false, "policy  shop  change  rule refunds changed"},
		{"another merge", true, [2]string{}, false, "2 changes of red"},
		{"a wrong request", false, [2]string{"> 50", "< 50"}, true, "1 of 3 tests pass"},
	} {
		if c.change[0] != "" {
			red.replace("organization/policies/shop.json", c.change[0], c.change[1])
		}
		outputs, failed := run(c.push)
		if failed != c.failed || !strings.Contains(outputs[len(outputs)-1], c.last) {
			t.Errorf("%s: got %q, %v", c.what, outputs, failed)
		}
	}
}
