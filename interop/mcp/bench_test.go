package mcp

import (
	"context"
	"os/exec"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// BenchmarkCall measures one call of a tool that does nothing, with the gateway and without it.
func BenchmarkCall(b *testing.B) {
	s := startService(b)
	for name, line := range map[string][]string{
		"direct":  {serverPath("mcp-server-everything")},
		"gateway": s.gateway(b.TempDir(), serverPath("mcp-server-everything")),
	} {
		b.Run(name, func(b *testing.B) {
			command := exec.Command(line[0], line[1:]...)
			command.Env = s.environment()
			c := mcp.NewClient(&mcp.Implementation{Name: "caller", Version: "1"}, nil)
			session, err := c.Connect(context.Background(), &mcp.CommandTransport{Command: command}, nil)
			must(b, err)
			defer session.Close()
			for b.Loop() {
				_, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"message": "m"}})
				must(b, err)
			}
		})
	}
}
