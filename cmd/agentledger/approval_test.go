package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

const refundPolicy = `{"policy_id":"refunds","name":"Refunds","rules":[{"rule_id":"refund","tool":"acme.refund",
	"decision":"allow_with_obligation","obligations":[{"type":"human_approval","approvals":1,"ttl_seconds":600}]}]}`

// Approvals by the real server on both engines, killed after each step: everything that was answered holds afterwards,
// and what was not answered can be requested again.
func TestApprovalsThroughKills(t *testing.T) {
	t.Parallel()
	t.Run("pebble", func(t *testing.T) { approvalsThroughKills(t) })
	t.Run("postgres", func(t *testing.T) {
		s, err := pgtest.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Stop() })
		approvalsThroughKills(t, "--storage", s.URL())
	})
}

// refunder is an agent, and the owner of its organization.
type refunder struct {
	*process
	org    foundedOrganization
	client *client.Client
	signer *client.Signer
	person *operator
}

func newRefunder(t *testing.T, p *process, org foundedOrganization) *refunder {
	t.Helper()
	c, err := client.New(client.Config{BaseURL: p.main, Token: org.IngestKey.Secret, Timeout: 45 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	who := client.Identity{Organization: org.OrganizationID, Agent: org.Agent.AgentID, Key: org.Agent.KeyID}
	signer, err := client.ParseSigner(who, org.Agent.PrivateB64)
	if err != nil {
		t.Fatal(err)
	}
	person, err := newOperator(p.main, p.identity)
	if err != nil {
		t.Fatal(err)
	}
	if err := person.signIn(t.Context(), "ops@"+string(org.Slug)+".example", testPassword); err != nil {
		t.Fatal(err)
	}
	return &refunder{p, org, c, signer, person}
}

// requireApproval activates a policy under which refunds need approval.
func (r *refunder) requireApproval(t *testing.T) {
	t.Helper()
	if err := r.person.callConsole(t.Context(), "POST", "/policies", rawJSON(refundPolicy), nil); err != nil {
		t.Fatal(err)
	}
	if err := r.person.callConsole(t.Context(), "POST", "/policies/refunds/activate", struct{}{}, nil); err != nil {
		t.Fatal(err)
	}
}

// question asks for one refund.
func (r *refunder) question() client.ApprovalQuestion {
	return client.ApprovalQuestion{
		Organization: r.org.OrganizationID, Agent: r.org.Agent.AgentID, Tool: "acme.refund", Payload: map[string]any{"amount": 7}, Trace: "trc-1",
	}
}

func (r *refunder) vote(t *testing.T, a client.Approval, vote string) error {
	return r.person.callConsole(t.Context(), "POST", "/approvals/"+a.ID+"/votes", map[string]any{"vote": vote, "action_digest": a.ActionDigest}, nil)
}

func approvalsThroughKills(t *testing.T, flags ...string) {
	dir := t.TempDir()
	p := startProcess(t, dir, flags...)
	red, blue := p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil)
	again := func(org foundedOrganization) *refunder {
		p.kill()
		p = startProcess(t, dir, flags...)
		return newRefunder(t, p, org)
	}
	r := newRefunder(t, p, red)
	r.requireApproval(t)
	a, err := r.client.AskApproval(t.Context(), r.question())
	if err != nil {
		t.Fatal(err)
	}
	r = again(red)
	same, err := r.client.AskApproval(t.Context(), r.question())
	if err != nil || same != a {
		t.Fatalf("requested again: got %+v, %v; want %+v", same, err, a)
	}
	waited := make(chan error, 1)
	go func() {
		got, err := r.client.AwaitApproval(t.Context(), a.ID)
		if err == nil && got.Status != client.ApprovalApproved {
			err = fmt.Errorf("got %s", got.Status)
		}
		waited <- err
	}()
	if err := r.vote(t, a, "approve"); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Errorf("long poll: %v", err)
	}
	r = again(red)
	if err := r.vote(t, a, "approve"); err == nil || !strings.Contains(err.Error(), "409") {
		t.Errorf("a second vote: got %v", err)
	}
	grant, err := r.client.ConsumeApproval(t.Context(), r.signer, a)
	if err != nil {
		t.Fatal(err)
	}
	r = again(red)
	if twice, err := r.client.ConsumeApproval(t.Context(), r.signer, a); err != nil || twice != grant {
		t.Errorf("consumed again: got %q, %v; want %q", twice, err, grant)
	}
	verifyGrant(t, r, a, grant)

	// The other organization sees nothing of it.
	b := newRefunder(t, p, blue)
	var answer *client.Error
	if _, err := b.client.GetApproval(t.Context(), a.ID); !errors.As(err, &answer) || answer.Status != 404 {
		t.Errorf("the other organization's agent: got %v", err)
	}
	if err := b.vote(t, a, "deny"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("the other organization's owner: got %v", err)
	}
	p.terminate()
	arguments := []string{"fsck", "--data", dir}
	if len(flags) > 0 {
		arguments = append(arguments, flags...)
	}
	// The events are: activation, requested, approved, grant key and consumed.
	if out, exit := command(t, "agentledger", arguments...); exit != 0 || !strings.Contains(out, "2 ledgers, 5 events, 0 faults") {
		t.Errorf("fsck: status %d, %s", exit, out)
	}
}

// verifyGrant has the real program verify a grant with the published key.
func verifyGrant(t *testing.T, r *refunder, a client.Approval, grant string) {
	t.Helper()
	var keys struct {
		Keys []struct {
			VerifierKey string `json:"vkey"`
			Use         string `json:"use"`
		} `json:"keys"`
	}
	answer, err := http.Get(r.main + "/v1/public/orgs/red/transparency/keys")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.UnmarshalRead(answer.Body, &keys); err != nil {
		t.Fatal(err)
	}
	if len(keys.Keys) != 2 || keys.Keys[1].Use != "grant" {
		t.Fatalf("keys: got %+v", keys)
	}
	file := filepath.Join(t.TempDir(), "grant")
	if err := os.WriteFile(file, []byte(grant), 0o600); err != nil {
		t.Fatal(err)
	}
	out, exit := command(t, "aps", "grant", "verify", file, "--key", keys.Keys[1].VerifierKey, "--action", a.ActionDigest.String())
	if exit != 0 || !strings.Contains(out, "good: approval "+a.ID) {
		t.Errorf("aps grant verify: status %d, %s", exit, out)
	}
	forged := strings.Replace(grant, a.ActionDigest.String(), id.Hash{1}.String(), 1)
	if err := os.WriteFile(file, []byte(forged), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, exit := command(t, "aps", "grant", "verify", file, "--key", keys.Keys[1].VerifierKey, "--action", id.Hash{1}.String()); exit != 1 {
		t.Errorf("a forged grant: status %d, %s", exit, out)
	}
}

// rawJSON is a body that is already JSON.
type rawJSON string

// MarshalJSON returns the text.
func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// An approver decides with aps in a terminal.
func TestApprovalsInATerminal(t *testing.T) {
	p := startProcess(t, t.TempDir())
	red, blue := p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil)
	r := newRefunder(t, p, red)
	r.requireApproval(t)
	a, err := r.client.AskApproval(t.Context(), r.question())
	if err != nil {
		t.Fatal(err)
	}
	aps := func(org foundedOrganization, args ...string) (string, int) {
		environment := []string{"APS_URL=" + p.main, "APS_ID_URL=" + p.identity, "APS_EMAIL=ops@" + string(org.Slug) + ".example", "APS_PASSWORD=" + testPassword}
		return commandWith(t, environment, "aps", append([]string{"approvals"}, args...)...)
	}
	other := id.Hash{1}.String()
	for _, tt := range []struct {
		org  foundedOrganization
		args []string
		exit int
		want string
	}{
		{red, []string{"list"}, 0, a.ID + "  pending"},
		{blue, []string{"list"}, 0, ""},
		{red, []string{"show", a.ID}, 0, `payload   {"amount":7}`},
		{blue, []string{"show", a.ID}, 1, "404 Not found"},
		{red, []string{"approve", a.ID, "--action", other}, 1, "409 action_digest does not match the approval"},
		{red, []string{"approve", a.ID}, 2, "--action"},
		{red, []string{"approve", a.ID, "--action", a.ActionDigest.String(), "--comment", "fine"}, 0, "status    approved, 1 of 1 agreed"},
		{red, []string{"deny", a.ID, "--action", a.ActionDigest.String()}, 1, "409 The approval is approved"},
		{red, []string{"list", "--status", "approved", "--json"}, 0, `"status":"approved"`},
	} {
		out, exit := aps(tt.org, tt.args...)
		if exit != tt.exit || !strings.Contains(out, tt.want) || tt.want == "" && out != "" {
			t.Errorf("%s: %v: status %d, %s", tt.org.Slug, tt.args, exit, out)
		}
	}
	out, exit := commandWith(t, []string{"APS_URL=" + p.main, "APS_ID_URL=" + p.identity, "APS_EMAIL=ops@red.example", "APS_PASSWORD=wrong"}, "aps", "approvals", "list")
	if exit != 1 || !strings.Contains(out, "sign in: 401") || strings.Contains(out, "wrong") {
		t.Errorf("a wrong password: status %d, %s", exit, out)
	}
}
