package mcp

import (
	"context"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/agentledger/agentledger/interop/service"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// BenchmarkCall measures one call of a tool that does nothing, with the gateway and without it.
func BenchmarkCall(b *testing.B) {
	s := service.Start(b)
	for name, line := range map[string][]string{
		"direct":  {serverPath("mcp-server-everything")},
		"gateway": gateway(s, b.TempDir(), serverPath("mcp-server-everything")),
	} {
		b.Run(name, func(b *testing.B) {
			command := exec.Command(line[0], line[1:]...)
			command.Env = s.Environment()
			c := mcp.NewClient(&mcp.Implementation{Name: "caller", Version: "1"}, nil)
			session, err := c.Connect(context.Background(), &mcp.CommandTransport{Command: command}, nil)
			must(b, err)
			defer session.Close()
			var took []time.Duration
			for b.Loop() {
				begun := time.Now()
				_, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"message": "m"}})
				must(b, err)
				took = append(took, time.Since(begun))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		})
	}
}
