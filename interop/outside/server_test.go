package outside

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

const (
	adminEmail    = "ops@acme.example"
	adminPassword = "a password for tests"
)

// service is a running server with one organization.
type service struct {
	main, identity string // base URLs

	Organization id.Organization `json:"organization_id"`
	Slug         id.Slug         `json:"slug"`
	Origin       id.Origin       `json:"origin"`
	LogKey       string          `json:"log_key"`
	Agent        struct {
		AgentID id.Agent `json:"agent_id"`
		KeyID   id.Key   `json:"key_id"`
		Private string   `json:"private_key_b64"`
	} `json:"agent"`
	IngestKey struct {
		Secret string `json:"secret"`
	} `json:"ingest_key"`
}

// started builds and starts the server once for all tests.
var started = sync.OnceValues(startService)

// stopService is set by startService.
var stopService = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	stopService()
	os.Exit(code)
}

func startService() (*service, error) {
	dir, err := os.MkdirTemp("", "agentledger-outside-")
	if err != nil {
		return nil, err
	}
	stopService = func() { os.RemoveAll(dir) }
	program := filepath.Join(dir, "agentledger")
	build := exec.Command("go", "build", "-o", program, "./cmd/agentledger")
	build.Dir = filepath.Join("..", "..")
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build: %w\n%s", err, output)
	}
	data := filepath.Join(dir, "data")
	create := exec.Command(program, "init", "--public-url", "http://log.test", "--data", data,
		"--name", "Acme", "--slug", "acme", "--admin-email", adminEmail, "--disclosure", "full", "--json")
	create.Env = append(os.Environ(), "AGENTLEDGER_ADMIN_PASSWORD="+adminPassword)
	made, err := create.Output()
	if err != nil {
		return nil, fmt.Errorf("init: %w", err)
	}
	s := new(service)
	if err := json.Unmarshal(made, s); err != nil {
		return nil, fmt.Errorf("init: %w", err)
	}
	serve := exec.Command(program, "serve", "--public-url", "http://log.test", "--data", data,
		"--listen", "127.0.0.1:0", "--id-listen", "127.0.0.1:0", "--metrics-listen", "", "--log-level", "warn")
	if err := s.launch(serve); err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	stopService = func() {
		serve.Process.Kill()
		serve.Wait()
		os.RemoveAll(dir)
	}
	return s, nil
}

// launch starts the server and reads its addresses from the line "serving URL … URL".
func (s *service) launch(serve *exec.Cmd) error {
	serve.Stderr = os.Stderr
	output, err := serve.StdoutPipe()
	if err != nil {
		return err
	}
	if err := serve.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) >= 4 && fields[0] == "serving" {
			s.main, s.identity = fields[1], fields[3]
			go io.Copy(io.Discard, output)
			return nil
		}
	}
	return errors.Join(errors.New("the server does not serve"), serve.Wait())
}

func startedService(t *testing.T) *service {
	t.Helper()
	s, err := started()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *service) client(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{BaseURL: s.main, Token: s.IngestKey.Secret})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdle)
	return c
}

func (s *service) signer(t *testing.T) *client.Signer {
	t.Helper()
	who := client.Identity{Organization: s.Organization, Agent: s.Agent.AgentID, Key: s.Agent.KeyID}
	signer, err := client.ParseSigner(who, s.Agent.Private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func (s *service) logKey(t *testing.T) tlog.VerifierKey {
	t.Helper()
	key, err := tlog.ParseVerifierKey(s.LogKey)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sendEvent signs and sends an event, and returns its id.
func (s *service) sendEvent(t *testing.T, e client.Event) id.Event {
	t.Helper()
	envelope, err := s.signer(t).SignEvent(e)
	if err != nil {
		t.Fatal(err)
	}
	result, err := s.client(t).Send(t.Context(), envelope)
	if err != nil {
		t.Fatal(err)
	}
	return result.EventID
}

// person is a signed-in member of the organization.
type person struct {
	service *service
	http    *http.Client
}

func (s *service) signIn(t *testing.T) *person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &person{s, &http.Client{Jar: jar, Timeout: 30 * time.Second}}
	p.post(s.identity+"/v1/id/auth/login", `{"email":"`+adminEmail+`","password":"`+adminPassword+`"}`, t.Fatalf)
	return p
}

func (p *person) post(url, body string, fail func(format string, values ...any)) {
	answer, err := p.http.Post(url, "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		fail("POST %s: %v", url, err)
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		text, _ := io.ReadAll(answer.Body)
		fail("POST %s: %d %s", url, answer.StatusCode, text)
	}
}

const refundPolicy = `{"policy_id":"shop","name":"Shop","rules":[
	{"rule_id":"refunds","tool":"acme.payments.refund","decision":"allow_with_obligation","obligations":[{"type":"human_approval"}]},
	{"rule_id":"customers","tool":"acme.customers.**","decision":"deny","reason":"Customers are not the agent's business"}]}`

var policyOnce sync.Once

// withPolicy activates refundPolicy and returns a user who may vote.
func (s *service) withPolicy(t *testing.T) *person {
	t.Helper()
	p := s.signIn(t)
	policyOnce.Do(func() {
		p.post(s.main+"/v1/console/policies", refundPolicy, t.Fatalf)
		p.post(s.main+"/v1/console/policies/shop/activate", `{}`, t.Fatalf)
	})
	return p
}

// approve votes for an approval.
func (p *person) approve(t *testing.T, a client.Approval) {
	body := fmt.Sprintf(`{"vote":"approve","action_digest":%q}`, a.ActionDigest)
	p.post(p.service.main+"/v1/console/approvals/"+a.ID+"/votes", body, t.Errorf)
}
