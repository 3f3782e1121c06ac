package mcp

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/interop"
)

// runCaller runs the client's script with a server and returns its lines.
func runCaller(t *testing.T, environment []string, kind string, server ...string) []string {
	t.Helper()
	caller := exec.Command("node", append([]string{"caller.mjs", kind}, server...)...)
	caller.Env = environment
	var diagnostics strings.Builder
	caller.Stderr = &diagnostics
	output, err := caller.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", kind, err, diagnostics.String())
	}
	return strings.Split(strings.TrimSpace(string(output)), "\n")
}

func replaceFolder(text, dir string) string { return strings.ReplaceAll(text, "DIR", dir) }

// Each server answers the same with the gateway as without it, and each call is recorded. The clients are the official one
// for TypeScript and mcp-go, which is a server too.
func TestSameAnswers(t *testing.T) {
	s := interop.Start(t)
	program, err := os.Executable()
	must(t, err)
	for kind, tc := range map[string]struct {
		server []string
		calls  int // of the official client
	}{
		"everything": {[]string{serverPath("mcp-server-everything")}, 80},
		"files":      {[]string{serverPath("mcp-server-filesystem"), "DIR"}, 7},
		"memory":     {[]string{serverPath("mcp-server-memory")}, 6},
		"thinking":   {[]string{serverPath("mcp-server-sequential-thinking")}, 3},
		"own":        {[]string{program}, 4},
	} {
		dir := t.TempDir()
		var server []string
		for _, arg := range tc.server {
			server = append(server, replaceFolder(arg, filepath.Join(dir, "files")))
		}
		environment := append(s.Environment(), "MCP_FILES="+filepath.Join(dir, "files"),
			"MEMORY_FILE_PATH="+filepath.Join(dir, "memory.json"))
		if kind == "own" {
			environment = append(environment, ownVariable+"=1")
		}
		for client, run := range map[string]struct {
			calls int
			ask   func(t *testing.T, line ...string) []string
		}{
			"TypeScript": {tc.calls, func(t *testing.T, line ...string) []string { return runCaller(t, environment, kind, line...) }},
			"mcp-go":     {len(goCalls[kind]), func(t *testing.T, line ...string) []string { return runGoCaller(t, environment, kind, dir, line...) }},
		} {
			t.Run(kind+"/"+client, func(t *testing.T) {
				fresh := func() {
					must(t, os.RemoveAll(filepath.Join(dir, "files")))
					must(t, os.RemoveAll(filepath.Join(dir, "memory.json")))
					must(t, os.Mkdir(filepath.Join(dir, "files"), 0o700))
				}
				fresh()
				want := run.ask(t, server...)
				fresh()
				before := s.Size(t)
				got := run.ask(t, gateway(s, filepath.Join(dir, "state"), server...)...)
				if len(got) != len(want) {
					t.Errorf("got %d answers, want %d", len(got), len(want))
				}
				for i := range min(len(got), len(want)) {
					if got[i] != want[i] {
						t.Errorf("got  %.2000s\nwant %.2000s", got[i], want[i])
					}
				}
				if recorded := s.Size(t) - before; recorded != 2*run.calls {
					t.Errorf("got %d events of %d calls", recorded, run.calls)
				}
			})
		}
	}
}
