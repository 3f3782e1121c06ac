// Package mcp tests the gateway with third-party MCP servers and a third-party client: the reference servers and the
// official TypeScript client. They are installed from npm (package-lock.json).
package mcp

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/agentledger/agentledger/interop"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// gateway returns the command line that puts a service's gateway in front of a server.
func gateway(s *interop.Service, state string, server ...string) []string {
	return append([]string{filepath.Join(s.Programs, "aps"), "mcp", "--state", state, "under-test", "--"}, server...)
}

func serverPath(name string) string {
	path, err := filepath.Abs(filepath.Join("node_modules", ".bin", name))
	if err != nil {
		panic(fmt.Sprintf("folder of this test: %v", err))
	}
	return path
}
