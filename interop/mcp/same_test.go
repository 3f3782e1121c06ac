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

// Each server answers the same with the gateway as without it, and each call is recorded.
func TestSameAnswers(t *testing.T) {
	s := interop.Start(t)
	for kind, tc := range map[string]struct {
		server []string
		calls  int
	}{
		"everything": {[]string{serverPath("mcp-server-everything")}, 80},
		"files":      {[]string{serverPath("mcp-server-filesystem"), "DIR"}, 7},
		"memory":     {[]string{serverPath("mcp-server-memory")}, 6},
	} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			for i, arg := range tc.server {
				if arg == "DIR" {
					tc.server[i] = filepath.Join(dir, "files")
				}
			}
			environment := append(s.Environment(), "MCP_FILES="+filepath.Join(dir, "files"),
				"MEMORY_FILE_PATH="+filepath.Join(dir, "memory.json"))
			fresh := func() {
				must(t, os.RemoveAll(filepath.Join(dir, "files")))
				must(t, os.RemoveAll(filepath.Join(dir, "memory.json")))
				must(t, os.Mkdir(filepath.Join(dir, "files"), 0o700))
			}
			fresh()
			want := runCaller(t, environment, kind, tc.server...)
			fresh()
			before := s.Size(t)
			got := runCaller(t, environment, kind, gateway(s, filepath.Join(dir, "state"), tc.server...)...)
			if len(got) != len(want) {
				t.Errorf("got %d answers, want %d", len(got), len(want))
			}
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Errorf("got  %.2000s\nwant %.2000s", got[i], want[i])
				}
			}
			if recorded := s.Size(t) - before; recorded != 2*tc.calls {
				t.Errorf("got %d events of %d calls", recorded, tc.calls)
			}
		})
	}
}
