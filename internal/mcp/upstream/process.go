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
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

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
	Args     []string          // program and its arguments
	Env      map[string]string // added to the environment
	Dir      string            // working folder; "" is the gateway's
	Stderr   io.Writer         // receives the server's diagnostics
	MaxBytes int               // bound of a message; 0 means message.DefaultMaxBytes
	// Patience is the time that the process gets to end after its input was closed, and again after
	// SIGTERM; 0 means 5 s.
	Patience time.Duration
}

type process struct {
	*message.Lines
	command  *exec.Cmd
	input    io.WriteCloser
	patience time.Duration
	close    sync.Once
}

// Start starts the process. It runs until Close, also when ctx ends.
func (c Command) Start(context.Context) (Conn, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("start server: no command")
	}
	command := exec.Command(c.Args[0], c.Args[1:]...)
	command.Dir, command.Stderr = c.Dir, c.Stderr
	command.Env = serverEnvironment(os.Environ(), c.Env)
	separateGroup(command)
	command.WaitDelay = time.Second // a child that is left behind can hold the outputs open
	input, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	p := &process{Lines: message.NewLines(output, input, c.MaxBytes), command: command, input: input,
		patience: c.Patience}
	if p.patience == 0 {
		p.patience = 5 * time.Second
	}
	return p, nil
}

// serverEnvironment returns the environment without the gateway's variables, and with the added ones.
func serverEnvironment(own []string, added map[string]string) []string {
	var all []string
	for _, v := range own {
		if !strings.HasPrefix(v, "APS_") {
			all = append(all, v)
		}
	}
	for name, value := range added {
		all = append(all, name+"="+value)
	}
	return all
}

// Close closes the server's input and waits for its end. A server that stays gets SIGTERM, and then SIGKILL.
func (p *process) Close() error {
	p.close.Do(func() {
		_ = p.input.Close() // an error means that the process has ended
		gone := make(chan error, 1)
		go func() { gone <- p.command.Wait() }()
		for _, hard := range []bool{false, true} {
			select {
			case <-gone:
				return
			case <-time.After(p.patience):
				endGroup(p.command, hard)
			}
		}
		<-gone
	})
	return nil
}
