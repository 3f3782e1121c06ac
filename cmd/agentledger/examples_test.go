package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

// shop is a server with which the examples run, in their own folder.
type shop struct {
	*refunder
	dir string
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := newShopWithoutPolicy(t)
	if err := s.person.callConsole(t.Context(), "POST", "/policies", rawJSON(readFile(t, "../../examples/shop.json")), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.person.callConsole(t.Context(), "POST", "/policies/shop/activate", struct{}{}, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

func newShopWithoutPolicy(t *testing.T) *shop {
	t.Helper()
	p := startProcess(t, t.TempDir())
	s := &shop{newRefunder(t, p, p.found(t.Context(), "red", nil)), t.TempDir()}
	if err := os.WriteFile(filepath.Join(s.dir, "agent.key"), []byte(s.org.Agent.PrivateB64+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// example is a program under test.
type example struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  *lockedBuffer
	done chan error
}

func (s *shop) run(t *testing.T, name string, args ...string) *example {
	t.Helper()
	e := &example{t, exec.Command(filepath.Join(programs, name), args...), new(lockedBuffer), make(chan error, 1)}
	e.cmd.Dir = s.dir
	e.cmd.Env = append(os.Environ(), "APS_URL="+s.main, "APS_TOKEN="+s.org.IngestKey.Secret, "APS_ORG="+s.org.OrganizationID.String(),
		"APS_AGENT="+string(s.org.Agent.AgentID), "APS_KEY_ID="+string(s.org.Agent.KeyID), "APS_KEY_FILE=agent.key")
	e.cmd.Stdout, e.cmd.Stderr = e.out, e.out
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.cmd.Process.Kill() })
	go func() { e.done <- e.cmd.Wait() }()
	return e
}

var asks = regexp.MustCompile(`waits for people: (apr_\w+)`)

// question waits until the program requests an approval, and returns its question.
func (e *example) question() string {
	e.t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if found := asks.FindStringSubmatch(e.out.String()); found != nil {
			return found[1]
		}
	}
	e.t.Fatalf("no approval was requested:\n%s", e.out)
	return ""
}

// ends waits for the program and checks its last line and its earlier output.
func (e *example) ends(last string, before ...string) {
	e.t.Helper()
	select {
	case err := <-e.done:
		if err != nil {
			e.t.Errorf("%v\n%s", err, e.out)
		}
	case <-time.After(2 * time.Minute):
		e.t.Fatalf("the program is still running:\n%s", e.out)
	}
	output := e.out.String()
	if !strings.HasSuffix(output, last+"\n") {
		e.t.Errorf("got %s, want at its end %s", output, last)
	}
	for _, want := range before {
		if strings.Count(output, want) != 1 {
			e.t.Errorf("got %s, want once %s", output, want)
		}
	}
}

// decide votes with aps, as the approver in the other terminal.
func (s *shop) decide(t *testing.T, vote, name string) {
	t.Helper()
	environment := []string{"APS_URL=" + s.main, "APS_ID_URL=" + s.identity, "APS_EMAIL=ops@red.example", "APS_PASSWORD=" + testPassword}
	shown, exit := commandWith(t, environment, "aps", "approvals", "show", name, "--json")
	var a struct {
		ActionDigest string `json:"action_digest"`
	}
	if err := json.UnmarshalRead(bytes.NewBufferString(shown), &a); err != nil || exit != 0 {
		t.Fatalf("show: %v, status %d: %s", err, exit, shown)
	}
	if out, exit := commandWith(t, environment, "aps", "approvals", vote, name, "--action", a.ActionDigest); exit != 0 {
		t.Fatalf("%s: status %d: %s", vote, exit, out)
	}
}

// The agent with tools: a denied call is not made, a call that needs approval waits for it, even over a kill, and the
// restarted agent repeats nothing.
func TestExampleToolloop(t *testing.T) {
	s := newShop(t)
	first := s.run(t, "toolloop")
	name := first.question()
	first.cmd.Process.Kill()
	<-first.done
	second := s.run(t, "toolloop")
	s.decide(t, "approve", name)
	second.ends("answer: Your refund of 84.50 USD is on its way.",
		`acme.orders.read       {"order_id":"A-1009","paid_usd":84.5,"status":"delivered"}`,
		"acme.customers.delete  denied: Customers are not the agent's business",
		`acme.payments.refund   {"refunded_usd":84.5}`)
	s.run(t, "toolloop").ends("answer: Your refund of 84.50 USD is on its way.")
	other := s.run(t, "toolloop", "-ticket", "ticket-2", "-journal", "another")
	if again := other.question(); again == name {
		t.Error("another conversation has the same question")
	} else {
		s.decide(t, "deny", again)
	}
	other.ends("answer: We can't refund you: denied: the approval is denied")
}

// Without a policy, which would allow the call that they want denied, the examples make no call.
func TestExamplesWithoutPolicy(t *testing.T) {
	s := newShopWithoutPolicy(t)
	for _, args := range [][]string{{"toolloop"}, {"httptool", "-slug", "red"}, {"countersigned"}} {
		e := s.run(t, args[0], args[1:]...)
		if err := <-e.done; err == nil || !strings.Contains(e.out.String(), "nothing would be enforced") || strings.Contains(e.out.String(), "orders") {
			t.Errorf("%s: got %v, %s", args, err, e.out)
		}
	}
}

// The tool confirms the call that asks for a receipt, and aps verify says so. Another call is only the agent's claim, and another key
// confirms nothing.
func TestExampleCountersigned(t *testing.T) {
	s := newShop(t)
	e := s.run(t, "countersigned")
	<-e.done
	output := e.out.String()
	key := strings.TrimSpace(output[strings.LastIndex(output, " ")+1:])
	e.done <- nil
	e.ends("--tool-key "+key, "POST /mails: 202, with a receipt: true\n", "POST /mails: 202, with a receipt: false\n")
	environment := []string{"APS_URL=" + s.main, "APS_ID_URL=" + s.identity, "APS_EMAIL=ops@red.example", "APS_PASSWORD=" + testPassword}
	pack := filepath.Join(s.dir, "countersigned.zip")
	if out, exit := commandWith(t, environment, "aps", "evidence", "--envelopes", "--tool", "shop.**", "--out", pack); exit != 0 {
		t.Fatalf("evidence: status %d: %s", exit, out)
	}
	for _, tt := range []struct{ key, want string }{
		{key, "receipts    1 act confirmed: 1 by did:web:shop.example; 1 of them without a grant; 1 only claimed by the agent\n"},
		{key, "confirmed by did:web:shop.example with status 202 without a grant"},
		{s.org.LogKey, "receipts    0 acts confirmed; 2 only claimed by the agent; 1 with a receipt that can't be checked\n"},
	} {
		out, exit := commandWith(t, nil, "aps", "verify", pack, "--acts", "--key", s.org.LogKey, "--tool-key", tt.key)
		if exit != 0 || !strings.Contains(out, tt.want) {
			t.Errorf("verify: status %d: %s, want %s", exit, out, tt.want)
		}
	}
}

// The HTTP API accepts money only with a grant, and each grant once.
func TestExampleHTTPTool(t *testing.T) {
	s := newShop(t)
	e := s.run(t, "httptool", "-slug", "red")
	s.decide(t, "approve", e.question())
	e.ends(`POST /refunds: 200 {"refunded":true}`,
		`GET /orders/A-1009: 200 {"status":"delivered","paid_usd":84.5}`,
		"the action is not allowed: Customers are not the agent's business")
	again := s.run(t, "httptool", "-slug", "red")
	<-again.done
	if output := again.out.String(); !strings.Contains(output, "the request was made before") {
		t.Errorf("again: got %s", output)
	}
}
