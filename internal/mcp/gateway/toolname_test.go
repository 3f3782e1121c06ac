package gateway

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/event"
)

func TestToolName(t *testing.T) {
	seen := map[string]string{}
	for tool, want := range map[string]string{
		"read_file":              "mcp.fs.read_file",
		"a.b/c-d":                "mcp.fs.a.b/c-d",
		"a b":                    "mcp.fs.a:20b",
		"a:20b":                  "mcp.fs.a:3A20b",
		".a":                     "mcp.fs.:2Ea",
		"a.":                     "mcp.fs.a:2E",
		"a..b":                   "mcp.fs.a.:2Eb",
		".":                      "mcp.fs.:2E",
		"é":                      "mcp.fs.:C3:A9",
		"*":                      "mcp.fs.:2A",
		"":                       "",
		strings.Repeat("x", 250): "",
	} {
		got, err := ToolName("fs", tool)
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", tool, got, err, want)
		}
		if want != "" && !event.ValidTool(string(got)) {
			t.Errorf("%q: %q is no tool name", tool, got)
		}
		if other, taken := seen[want]; taken && want != "" {
			t.Errorf("%q and %q have the same name", tool, other)
		}
		seen[want] = tool
	}
	for name, want := range map[string]bool{"fs": true, "my-fs2": true, "": false, "a_b": false, "a.b": false, "a:b": false, "a/b": false} {
		if got := ValidServerName(name); got != want {
			t.Errorf("%q: got %v", name, got)
		}
	}
}
