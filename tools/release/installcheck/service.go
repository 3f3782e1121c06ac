package installcheck

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// settings are for loopback, with ports that the system chooses.
const settings = `{"data": "/var/lib/agentledger", "anchors": "/var/lib/agentledger-anchors", ` +
	`"public_url": "http://localhost", "listen": "127.0.0.1:0", "id_listen": "127.0.0.1:0", "metrics_listen": ""}`

var (
	servingLine = regexp.MustCompile(`^serving (http://[^ ]+) identity`)
	setupLine   = regexp.MustCompile(`/setup#token=([A-Za-z0-9_-]{43})`)
	execLine    = regexp.MustCompile(`(?m)^ExecStart=(.+)$`)
)

// service is the running program.
type service struct {
	cmd   *exec.Cmd
	url   string
	token string // of the setup, or "" if there is an organization
}

// startService runs the command of the installed unit as the unit's user, because systemd may not be running here.
func startService(ctx context.Context) (*service, error) {
	unit, err := os.ReadFile("/usr/lib/systemd/system/agentledger.service")
	if err != nil {
		return nil, fmt.Errorf("read unit: %w", err)
	}
	command := execLine.FindSubmatch(unit)
	if command == nil || !bytes.Contains(unit, []byte("\nUser=agentledger\n")) {
		return nil, errors.New("the unit has no command or no user")
	}
	args := append([]string{"--reuid=agentledger", "--regid=agentledger", "--clear-groups", "--no-new-privs",
		"--bounding-set=-all"}, strings.Fields(string(command[1]))...)
	s := &service{cmd: exec.CommandContext(ctx, "setpriv", args...)}
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = "/", []string{"PATH=/usr/bin:/bin"}, os.Stderr
	return s, s.awaitServing()
}

// awaitServing starts the command and returns when it serves.
func (s *service) awaitServing() error {
	said, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("start service: %w", err)
	}
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if found := setupLine.FindStringSubmatch(lines.Text()); found != nil {
			s.token = found[1]
		}
		if found := servingLine.FindStringSubmatch(lines.Text()); found != nil {
			s.url = found[1]
			return nil
		}
	}
	return errors.Join(errors.New("the service did not start to serve"), s.stop())
}

// stop ends the service as a service manager does.
func (s *service) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop service: %w", err)
	}
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("stop service: %w", err)
	}
	return nil
}

// founded is the part of a setup's response that an agent needs.
type founded struct {
	Organization struct {
		OrganizationID string `json:"organization_id"`
	} `json:"organization"`
	LogKey string `json:"log_key"`
	Agent  struct {
		AgentID    string `json:"agent_id"`
		KeyID      string `json:"key_id"`
		PrivateKey string `json:"private_key_b64"`
	} `json:"agent"`
	IngestKey struct {
		Secret string `json:"secret"`
	} `json:"ingest_key"`
}

func (s *service) setUp(ctx context.Context) (f founded, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	body, err := json.Marshal(map[string]any{"token": s.token, "email": "ops@acme.example",
		"password": "correct horse battery", "organization": map[string]any{"name": "Acme", "slug": "acme"}})
	if err != nil {
		return f, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/id/setup", bytes.NewReader(body))
	if err != nil {
		return f, err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return f, fmt.Errorf("set up: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return f, fmt.Errorf("set up: %w", err)
	}
	if answer.StatusCode != http.StatusCreated {
		return f, fmt.Errorf("set up: got %d: %s", answer.StatusCode, text)
	}
	return f, json.Unmarshal(text, &f)
}

// useService starts the service, creates the first organization, sends an event with aps and verifies it.
func (c *check) useService(ctx context.Context) (err error) {
	if err := os.WriteFile(settingsFile, []byte(settings), 0o644); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	s, err := startService(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	f, err := s.setUp(ctx)
	if err != nil {
		return err
	}
	key, event := filepath.Join(c.work, "agent.key"), filepath.Join(c.work, "event.json")
	if err := os.WriteFile(key, []byte(f.Agent.PrivateKey+"\n"), 0o600); err != nil {
		return err
	}
	const text = `{"event_id":"first","action_kind":"tool_call","tool_name":"acme.orders.read","payload":{"order":1}}`
	if err := os.WriteFile(event, []byte(text), 0o600); err != nil {
		return err
	}
	send := exec.CommandContext(ctx, "/usr/bin/aps", "send", event)
	send.Env = []string{"APS_URL=" + s.url, "APS_TOKEN=" + f.IngestKey.Secret, "APS_ORG=" + f.Organization.OrganizationID,
		"APS_AGENT=" + f.Agent.AgentID, "APS_KEY_ID=" + f.Agent.KeyID, "APS_KEY_FILE=" + key}
	if said, err := send.CombinedOutput(); err != nil {
		return fmt.Errorf("aps send: %w: %s", err, said)
	}
	c.key, c.event = f.LogKey, "/v1/public/orgs/acme/verify/first"
	return c.verifyEvent(ctx, s)
}

func (c *check) verifyEvent(ctx context.Context, s *service) error {
	_, err := runCommand(ctx, "/usr/bin/aps", "verify", s.url+c.event, "--key", c.key)
	return err
}

// useAgain installs the packages over the remaining data, and verifies the old event.
func (c *check) useAgain(ctx context.Context) (err error) {
	if err := c.installPackages(ctx); err != nil {
		return err
	}
	s, err := startService(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if s.token != "" {
		return errors.New("the service requests a second setup")
	}
	return c.verifyEvent(ctx, s)
}
