// Package upstream connects to MCP servers: to a process by its standard input and output, or to an
// address by streamable HTTP.
//
// Invariants:
//
//   - The environment of a process has none of the gateway's own variables (APS_…), because these hold its
//     credentials.
//   - A message of a server that can't be read is reported and skipped. It ends no connection.
//   - Credentials of a server are sent to the address that the configuration names, and to no other.
package upstream

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/internal/childprocess"
	"github.com/agentledger/agentledger/internal/mcp/message"
)

// Conn is a connection with an MCP server.
type Conn interface {
	// Read returns the next message. One goroutine reads at a time.
	Read() (message.Message, error)
	// Write sends a message. Several goroutines may write.
	Write(message.Message) error
	// Close ends the connection and its process.
	Close() error
}

// Command is a server that is started as a process.
type Command struct {
	childprocess.Command
	MaxBytes int // bound of a message; 0 means message.DefaultMaxBytes
}

type process struct {
	*message.Lines
	*childprocess.Process
}

// Start starts the process. It runs until Close, also when ctx ends.
func (c Command) Start(context.Context) (Conn, error) {
	started, err := c.Command.Start()
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	return &process{message.NewLines(started.Output, started.Input, c.MaxBytes), started}, nil
}
