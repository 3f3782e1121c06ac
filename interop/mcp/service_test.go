// Package mcp holds the gateway against MCP servers and a client by others: the reference servers and the
// official TypeScript client. They come from npm (package-lock.json).
package mcp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
)

// service is a running server with one organization.
type service struct {
	programs string // folder of agentledger and aps
	data     string
	address  string
	process  *exec.Cmd

	Organization id.Organization `json:"organization_id"`
	Agent        struct {
		AgentID id.Agent `json:"agent_id"`
		KeyID   id.Key   `json:"key_id"`
		Private string   `json:"private_key_b64"`
	} `json:"agent"`
	IngestKey struct {
		Secret string `json:"secret"`
	} `json:"ingest_key"`
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// startService builds the programs and starts the server, which ends with the test.
func startService(t testing.TB) *service {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir, "./cmd/agentledger", "./cmd/aps")
	build.Dir = filepath.Join("..", "..")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, output)
	}
	s := &service{programs: dir, data: filepath.Join(dir, "data"), address: "127.0.0.1:0"}
	create := exec.Command(filepath.Join(dir, "agentledger"), "init", "--public-url", "http://log.test", "--data", s.data,
		"--name", "Acme", "--slug", "acme", "--admin-email", "ops@acme.example", "--disclosure", "full", "--json")
	create.Env = append(os.Environ(), "AGENTLEDGER_ADMIN_PASSWORD=a password for tests")
	made, err := create.Output()
	must(t, err)
	must(t, json.Unmarshal(made, s))
	must(t, os.WriteFile(filepath.Join(dir, "key"), []byte(s.Agent.Private), 0o600))
	s.serve(t)
	t.Cleanup(s.kill)
	return s
}

// serve starts the server, at the same address as before.
func (s *service) serve(t testing.TB) {
	t.Helper()
	s.process = exec.Command(filepath.Join(s.programs, "agentledger"), "serve", "--public-url", "http://log.test",
		"--data", s.data, "--listen", s.address, "--id-listen", "127.0.0.1:0", "--metrics-listen", "", "--log-level", "warn")
	s.process.Stderr = os.Stderr
	output, err := s.process.StdoutPipe()
	must(t, err)
	must(t, s.process.Start())
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) >= 4 && fields[0] == "serving" {
			s.address = strings.TrimPrefix(fields[1], "http://")
			go io.Copy(io.Discard, output)
			return
		}
	}
	t.Fatal("the server does not serve")
}

func (s *service) kill() {
	s.process.Process.Kill()
	s.process.Wait()
}

// environment returns the environment of a gateway.
func (s *service) environment() []string {
	return append(os.Environ(), "APS_URL=http://"+s.address, "APS_TOKEN="+s.IngestKey.Secret,
		"APS_ORG="+s.Organization.String(), "APS_AGENT="+string(s.Agent.AgentID), "APS_KEY_ID="+string(s.Agent.KeyID),
		"APS_KEY_FILE="+filepath.Join(s.programs, "key"))
}

// size returns the number of events in the log.
func (s *service) size(t testing.TB) (n int) {
	t.Helper()
	r, err := http.Get("http://" + s.address + "/v1/public/orgs/acme/transparency/head")
	must(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	must(t, err)
	var head map[string]any
	must(t, json.Unmarshal(text, &head))
	size, ok := head["tree_size"].(float64)
	if !ok {
		t.Fatalf("head: %s", text)
	}
	return int(size)
}

// gateway returns the command line that puts the gateway before a server.
func (s *service) gateway(state string, server ...string) []string {
	return append([]string{filepath.Join(s.programs, "aps"), "mcp", "--state", state, "under-test", "--"}, server...)
}

func serverPath(name string) string {
	path, err := filepath.Abs(filepath.Join("node_modules", ".bin", name))
	if err != nil {
		panic(fmt.Sprintf("folder of this test: %v", err))
	}
	return path
}
