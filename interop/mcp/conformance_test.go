package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/interop"
)

// node24 returns the Node.js that package.json names, because the conformance suite and the inspector need a newer one than
// the other tests.
func node24(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("node_modules/node-*/bin/node")
	must(t, err)
	if len(found) == 0 {
		t.Fatal("no Node.js 24 in node_modules: scripts/npm interop/mcp")
	}
	path, err := filepath.Abs(found[0])
	must(t, err)
	return path
}

// startEverything starts the reference server of the official Go SDK, and returns its URL.
func startEverything(t *testing.T, program string, stateless bool) string {
	t.Helper()
	address := interop.FreeAddress(t)
	server := exec.Command(program, "-http", address, fmt.Sprint("-stateless=", stateless))
	must(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	for range 100 {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return "http://" + address + "/mcp"
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the reference server does not listen")
	return ""
}

// runConformance runs the official conformance suite against a server. It returns the number of checks by scenario, check
// and status.
func runConformance(t *testing.T, url, revision string) map[string]int {
	t.Helper()
	folder := t.TempDir()
	suite := exec.Command(node24(t), "node_modules/@modelcontextprotocol/conformance/dist/index.js", "server",
		"--url", url, "--spec-version", revision, "--suite", "all", "--output-dir", folder)
	output, _ := suite.CombinedOutput() // its status is that of the checks
	files, err := filepath.Glob(filepath.Join(folder, "*", "checks.json"))
	must(t, err)
	if len(files) < 20 {
		t.Fatalf("%d scenarios ran:\n%s", len(files), output)
	}
	results := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		var checks []struct{ ID, Status, ErrorMessage string }
		must(t, json.Unmarshal(text, &checks))
		scenario := timeSuffix.ReplaceAllString(filepath.Base(filepath.Dir(file)), "")
		for _, c := range checks {
			if c.Status != "INFO" {
				results[scenario+" "+c.ID+" "+c.Status]++
			}
			if c.Status == "FAILURE" {
				t.Logf("%s %s %s: %s", url, scenario, c.ID, c.ErrorMessage)
			}
		}
	}
	return results
}

var timeSuffix = regexp.MustCompile(`-\d{4}-\d\d-\d\dT.*Z$`)

// differences are the results that the gateway changes on purpose, as the change in the number of checks.
var differences = []struct {
	revision, server string // "" for all servers
	reason           string
	changes          map[string]int
}{
	{"2025-11-25", "", "The gateway never ends a stream before its response, so it sends no time after which to resume it.", map[string]int{
		"server-server-sse-polling server-sse-retry-field SUCCESS": -1, "server-server-sse-polling server-sse-retry-field WARNING": 1,
	}},
	{"2025-11-25", "by URL", "The server ends the stream of a call and has given it no id, so nobody can resume it. Without the gateway the " +
		"client never gets an answer; the gateway answers that the end is not known.", map[string]int{
		"server-server-sse-polling incoming-sse-event FAILURE": 1,
	}},
	{"2026-07-28", "", "The gateway answers with one JSON document if no notification comes before the response. The check is for streams only.", map[string]int{
		"server-server-sse-multiple-streams server-sse-streams-functional SUCCESS": -1,
	}},
}

// The official conformance suite has the same results with the gateway as without it, for servers that the gateway starts and
// for servers at an address, in sessions and without.
func TestConformance(t *testing.T) {
	s := interop.Start(t)
	program := filepath.Join(t.TempDir(), "everything")
	build := exec.Command("go", "build", "-mod=mod", "-o", program, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, output)
	}
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			url := startEverything(t, program, revision == "2026-07-28")
			direct := runConformance(t, url, revision)
			for name, server := range map[string][]string{"by URL": {"--url", url, "under-test"}, "by command": {"under-test", "--", program}} {
				want := maps.Clone(direct)
				for _, d := range differences {
					if d.revision != revision || d.server != "" && d.server != name {
						continue
					}
					for check, change := range d.changes {
						want[check] += change
					}
				}
				got := runConformance(t, listenOpen(t, s, append([]string{"--state", t.TempDir()}, server...)...), revision)
				all := maps.Clone(want)
				maps.Copy(all, got)
				passed := 0
				for check := range all {
					if got[check] != want[check] {
						t.Errorf("%s: %s: %d, want %d, and %d without the gateway", name, check, got[check], want[check], direct[check])
					}
					if strings.HasSuffix(check, " SUCCESS") {
						passed += got[check]
					}
				}
				t.Logf("%s: %d checks passed", name, passed)
			}
		})
	}
}
