package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/client"
)

// colleague is a member with a session, who calls the service like a page.
type colleague struct {
	t    testing.TB
	base string
	http *http.Client
	org  string // organization id
}

// object is a response.
type object map[string]any

func (o object) text(name string) string { s, _ := o[name].(string); return s }

func newColleague(t testing.TB, p *process) *colleague {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &colleague{t: t, base: p.main, http: &http.Client{Jar: jar, Timeout: time.Minute}}
}

// call sends body and wants a status.
func (c *colleague) call(method, path string, body any, status int, header ...string) object {
	c.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	if body == nil {
		text = nil
	}
	r, err := http.NewRequestWithContext(context.WithoutCancel(c.t.Context()), method, c.base+path, bytes.NewReader(text))
	if err != nil {
		c.t.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := c.http.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if answer.StatusCode != status {
		c.t.Fatalf("%s %s: got %d %s, want %d", method, path, answer.StatusCode, read, status)
	}
	var o object
	_ = json.Unmarshal(read, &o) // 204 has no body
	return o
}

// invite invites an address and returns the colleague who accepted.
func (c *colleague) invite(p *process, name, role string) *colleague {
	c.t.Helper()
	invited := c.call("POST", "/v1/id/orgs/"+c.org+"/invitations", object{"email": name + "@red.example", "role": role}, 201)
	_, token, _ := strings.Cut(invited.text("url"), "#token=")
	who := newColleague(c.t, p)
	who.org = c.org
	if got := who.call("GET", "/v1/id/invitations/preview", nil, 200, "X-Invitation-Token", token); got.text("role") != role {
		c.t.Errorf("preview of %s: got %v", name, got)
	}
	who.call("POST", "/v1/id/invitations/accept", object{"token": token, "display_name": name, "password": "a long password of " + name}, 200)
	newColleague(c.t, p).call("POST", "/v1/id/invitations/accept", object{"token": token, "password": "a long password of eve"}, 404)
	return who
}

// membership returns the membership of an address.
func (c *colleague) membership(email string) string {
	c.t.Helper()
	members, _ := c.call("GET", "/v1/id/orgs/"+c.org+"/members", nil, 200)["members"].([]any)
	for _, m := range members {
		if o := object(m.(map[string]any)); o.text("email") == email {
			return "/v1/id/orgs/" + c.org + "/members/" + o.text("membership_id")
		}
	}
	c.t.Fatalf("%s is not a member: %v", email, members)
	return ""
}

// A company's day: from an empty store to a refund that two members approved, and the departure of the owner.
func TestCompanyDay(t *testing.T) {
	dir := t.TempDir()
	p := startProcess(t, dir)
	_, token, ok := strings.Cut(p.setup, "/setup#token=")
	if !ok {
		t.Fatalf("no setup URL: %q", p.setup)
	}
	ann := newColleague(t, p)
	made := ann.call("POST", "/v1/id/setup", object{"token": token, "organization": object{"name": "Red", "slug": "red"},
		"email": "ann@red.example", "password": "a long password of ann"}, 201)
	ann.org = made["organization"].(map[string]any)["organization_id"].(string)
	newColleague(t, p).call("POST", "/v1/id/setup", object{"token": token, "organization": object{"name": "Blue", "slug": "blue"},
		"email": "eve@blue.example", "password": "a long password of eve"}, 409)
	p.found(t.Context(), "blue", nil) // a neighbor

	bob, carol := ann.invite(p, "bob", "approver"), ann.invite(p, "carol", "approver")
	dave, erin := ann.invite(p, "dave", "policy_editor"), ann.invite(p, "erin", "auditor")
	bob.call("POST", "/v1/id/orgs/"+ann.org+"/invitations", object{"email": "eve@red.example", "role": "owner"}, 403)

	pushPolicy(t, p, dave)
	agent := newAgent(t, p, made)
	answer := agent.evaluate(200)
	approval := "/v1/console/approvals/" + answer.text("approval_id")
	ballot := object{"vote": "approve", "action_digest": bob.call("GET", approval, nil, 200).text("action_digest"), "comment": "a good customer"}
	bob.call("POST", approval+"/votes", ballot, 200)
	erin.call("POST", approval+"/votes", ballot, 403)
	if payload := erin.call("GET", approval, nil, 200)["payload"]; payload == nil {
		t.Error("the auditor does not see the payload")
	}
	if payload, shown := dave.call("GET", approval, nil, 200)["payload"]; shown {
		t.Errorf("the policy editor sees the payload: %v", payload)
	}

	// Suspended between vote and quorum: the vote of bob no longer counts.
	ann.call("PATCH", ann.membership("bob@red.example"), object{"suspended": true}, 200)
	bob.call("GET", approval, nil, 401)
	carol.call("POST", approval+"/votes", ballot, 200)
	if got := agent.status(answer.text("approval_id")); got != "pending" {
		t.Errorf("after one counted vote: got %s", got)
	}
	ann.call("POST", approval+"/votes", ballot, 200)
	if got := agent.status(answer.text("approval_id")); got != "approved" {
		t.Errorf("after two counted votes: got %s", got)
	}
	agent.consume(answer.text("approval_id"))

	// The neighbor sees nothing of all that.
	stranger := newColleague(t, p)
	stranger.call("POST", "/v1/id/auth/login", object{"email": "ops@blue.example", "password": testPassword}, 200)
	stranger.call("GET", approval, nil, 404)
	stranger.call("GET", "/v1/id/orgs/"+ann.org+"/members", nil, 404)

	// The owner leaves; the last owner can't.
	own := ann.membership("ann@red.example")
	if got := ann.call("DELETE", own, nil, 409).text("code"); got != "last_owner" {
		t.Errorf("the last owner: got %s", got)
	}
	ann.call("PATCH", ann.membership("carol@red.example"), object{"role": "owner"}, 200)
	ann.call("DELETE", own, nil, 204)
	ann.call("GET", "/v1/console/organization", nil, 401)
	carol.call("DELETE", carol.membership("carol@red.example"), nil, 409)

	p.kill()
	p = startProcess(t, dir)
	again := newColleague(t, p)
	again.call("POST", "/v1/id/auth/login", object{"email": "ann@red.example", "password": "a long password of ann"}, 403)
	again.call("POST", "/v1/id/auth/login", object{"email": "bob@red.example", "password": "a long password of bob"}, 403)
	again.call("POST", "/v1/id/auth/login", object{"email": "carol@red.example", "password": "a long password of carol"}, 200)
	p.terminate()
	if out, exit := commandWith(t, nil, "agentledger", "fsck", "--data", dir); exit != 0 {
		t.Errorf("fsck: status %d, %s", exit, out)
	}
}

// pushPolicy uploads a policy from a folder, with a token created only for that.
func pushPolicy(t *testing.T, p *process, maker *colleague) {
	t.Helper()
	made := maker.call("POST", "/v1/console/tokens",
		object{"name": "repository", "role": "policy_editor", "expires_at": time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")}, 201)
	file := filepath.Join(t.TempDir(), "refunds.json")
	const document = `{"policy_id":"refunds","name":"Refunds","rules":[{"rule_id":"two","tool":"acme.refund",
		"decision":"allow_with_obligation","obligations":[{"type":"human_approval","approvals":2,"ttl_seconds":3600}]}]}`
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	environment := []string{"APS_URL=" + p.main, "APS_CONSOLE_TOKEN=" + made.text("token"), "APS_EMAIL="}
	for _, args := range []string{"policy push --activate " + file, "policy diff " + file} {
		if out, exit := commandWith(t, environment, "aps", strings.Fields(args)...); exit != 0 || strings.Contains(out, made.text("token")) {
			t.Fatalf("aps %s: status %d, %s", args, exit, out)
		}
	}
	if out, exit := commandWith(t, environment, "aps", "approvals", "list"); exit != 0 {
		t.Errorf("aps approvals list: status %d, %s", exit, out)
	}
}

// dayAgent is an agent that speaks JSON over HTTP as a TypeScript program would, except for the proof of its key.
type dayAgent struct {
	*colleague
	made   foundedOrganization
	client *client.Client
	signer *client.Signer
}

func newAgent(t testing.TB, p *process, made object) *dayAgent {
	t.Helper()
	a := &dayAgent{colleague: newColleague(t, p)}
	text, err := json.Marshal(object{"agent": made["agent"], "ingest_key": made["ingest_key"]})
	if err == nil {
		err = json.Unmarshal(text, &a.made)
	}
	if err != nil {
		t.Fatal(err)
	}
	organization := made["organization"].(map[string]any)["organization_id"].(string)
	if err := a.made.OrganizationID.UnmarshalText([]byte(organization)); err != nil {
		t.Fatal(err)
	}
	if a.client, err = client.New(client.Config{BaseURL: p.main, Token: a.made.IngestKey.Secret}); err != nil {
		t.Fatal(err)
	}
	who := client.Identity{Organization: a.made.OrganizationID, Agent: a.made.Agent.AgentID, Key: a.made.Agent.KeyID}
	if a.signer, err = client.ParseSigner(who, a.made.Agent.PrivateB64); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *dayAgent) evaluate(status int) object {
	a.t.Helper()
	return a.call("POST", "/v1/ingest/policy/evaluate", object{"organization_id": a.made.OrganizationID, "agent_id": a.made.Agent.AgentID,
		"tool_name": "acme.refund", "payload": object{"amount": 10, "currency": "EUR"}, "request_approval": true}, status,
		"Authorization", "Bearer "+a.made.IngestKey.Secret)
}

func (a *dayAgent) status(approval string) string {
	a.t.Helper()
	return a.call("GET", "/v1/ingest/approvals/"+approval, nil, 200, "Authorization", "Bearer "+a.made.IngestKey.Secret).text("status")
}

func (a *dayAgent) consume(approval string) {
	a.t.Helper()
	found, err := a.client.GetApproval(a.t.Context(), approval)
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err := a.client.ConsumeApproval(a.t.Context(), a.signer, found); err != nil {
		a.t.Fatal(err)
	}
}
