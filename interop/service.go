package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
)

// Service is the real server, running with one organization, acme. It has a separate data folder, listens on loopback and
// ends with the test. The tests of the packages below interop use it.
type Service struct {
	Programs string // folder of agentledger and aps
	data     string
	Address  string // host:port of the main listener
	process  *exec.Cmd
	more     []string // arguments of serve

	Organization id.Organization `json:"organization_id"`
	Slug         id.Slug         `json:"slug"`
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

// FreeAddress returns an address of this machine that nobody listens on. Its port is below those that systems give to
// connections, so that it stays free until a program listens there.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 15_000+rand.IntN(15_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no address is free")
	return ""
}

func mustServe(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Start builds the programs and starts the server. It must be called from a test of a package directly below interop.
func Start(t testing.TB) *Service { return StartWith(t) }

// StartWith is like Start, with additional arguments of serve.
func StartWith(t testing.TB, more ...string) *Service {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir, "./cmd/agentledger", "./cmd/aps")
	build.Dir = filepath.Join("..", "..")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, output)
	}
	s := &Service{Programs: dir, data: filepath.Join(dir, "data"), Address: "127.0.0.1:0", more: more}
	create := exec.Command(filepath.Join(dir, "agentledger"), "init", "--public-url", "http://log.test", "--data", s.data,
		"--name", "Acme", "--slug", "acme", "--admin-email", "ops@acme.example", "--disclosure", "full", "--json")
	create.Env = append(os.Environ(), "AGENTLEDGER_ADMIN_PASSWORD=a password for tests")
	made, err := create.Output()
	mustServe(t, err)
	mustServe(t, json.Unmarshal(made, s))
	mustServe(t, os.WriteFile(filepath.Join(dir, "key"), []byte(s.Agent.Private), 0o600))
	s.Serve(t)
	t.Cleanup(s.Kill)
	return s
}

// Serve starts the server again at the same address.
func (s *Service) Serve(t testing.TB) {
	t.Helper()
	arguments := append([]string{"serve", "--public-url", "http://log.test",
		"--data", s.data, "--listen", s.Address, "--id-listen", "127.0.0.1:0", "--metrics-listen", "", "--log-level", "warn"},
		s.more...)
	s.process = exec.Command(filepath.Join(s.Programs, "agentledger"), arguments...)
	s.process.Stderr = os.Stderr
	output, err := s.process.StdoutPipe()
	mustServe(t, err)
	mustServe(t, s.process.Start())
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) >= 4 && fields[0] == "serving" {
			s.Address = strings.TrimPrefix(fields[1], "http://")
			go io.Copy(io.Discard, output)
			return
		}
	}
	t.Fatal("the server did not start serving")
}

// Kill kills the server with SIGKILL.
func (s *Service) Kill() {
	s.process.Process.Kill()
	s.process.Wait()
}

// Environment returns the environment for a program of the organization's agent.
func (s *Service) Environment() []string {
	return append(os.Environ(), "APS_URL=http://"+s.Address, "APS_TOKEN="+s.IngestKey.Secret,
		"APS_ORG="+s.Organization.String(), "APS_AGENT="+string(s.Agent.AgentID), "APS_KEY_ID="+string(s.Agent.KeyID),
		"APS_KEY_FILE="+filepath.Join(s.Programs, "key"))
}

// Size returns the number of events in the log.
func (s *Service) Size(t testing.TB) (n int) {
	t.Helper()
	r, err := http.Get("http://" + s.Address + "/v1/public/orgs/acme/transparency/head")
	mustServe(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	mustServe(t, err)
	var head map[string]any
	mustServe(t, json.Unmarshal(text, &head))
	size, ok := head["tree_size"].(float64)
	if !ok {
		t.Fatalf("head: %s", text)
	}
	return int(size)
}
