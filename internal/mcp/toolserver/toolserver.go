// Package toolserver serves tools to one client of the Model Context Protocol (MCP).
//
// Invariants:
//
//   - It serves clients that shake hands with initialize (2024-11-05 to 2025-11-25) and clients without a handshake
//     (2026-07-28), each request by itself.
//   - A tool is called only with arguments that it declares, each at most once, and never without a required one.
//   - Concurrent calls and message sizes are bounded.
//   - A call that the client cancels is not answered. Its tool may have taken effect.
package toolserver

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/agentledger/agentledger/internal/mcp/message"
)

// MaxCalls bounds the calls of tools at once.
const MaxCalls = 16

// Server has the tools. It must not be changed while it serves.
type Server struct {
	Name    string
	Version string
	Tools   []Tool
}

// Tool is a tool whose arguments are texts.
type Tool struct {
	Name        string
	Description string
	ReadOnly    bool // changes nothing; clients are told that any other tool may destroy
	Arguments   []Argument

	// Call returns a text for the client. An error is told to the client as the result of a tool that failed. Call is
	// called by several goroutines at once. An argument that the client left out is "".
	Call func(ctx context.Context, arguments map[string]string) (string, error)
}

// Argument is one argument of a tool.
type Argument struct {
	Name        string
	Description string
	Required    bool
}

// Conn is the connection with a client. Write may be called by several goroutines.
type Conn interface {
	Read() (message.Message, error)
	Write(message.Message) error
}

// session is the requests of one client.
type session struct {
	*Server
	conn  Conn
	calls sync.WaitGroup

	mu      sync.Mutex
	running map[string]context.CancelFunc // calls by the text of their id
}

// Serve serves a client until it has gone, and waits for its calls. A client that goes is no error. When ctx ends
// before, its error is returned; a Read that waits then goes on.
func (s *Server) Serve(ctx context.Context, conn Conn) error {
	c := &session{Server: s, conn: conn, running: make(map[string]context.CancelFunc)}
	ended := make(chan error, 1)
	go func() { ended <- c.readAll(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// readAll handles messages until there are no more.
func (c *session) readAll(ctx context.Context) error {
	defer c.calls.Wait()
	for {
		m, err := c.conn.Read()
		switch {
		case errors.Is(err, message.ErrMalformed):
			err = c.conn.Write(message.Message{}.Refuse(message.CodeParse, err.Error()))
		case errors.Is(err, message.ErrTooLong):
			err = c.conn.Write(message.Message{}.Refuse(message.CodeInvalidRequest, err.Error()))
		case errors.Is(err, io.EOF):
			return nil
		case err == nil:
			err = c.handle(ctx, m)
		}
		if err != nil {
			return err
		}
	}
}

// handle handles one message. The error is that of the connection.
func (c *session) handle(ctx context.Context, m message.Message) error {
	switch {
	case m.Method == "notifications/cancelled":
		c.cancel(m)
		return nil
	case !m.IsRequest():
		return nil // other notifications, and answers: nothing was asked
	}
	r, refusal := readRequest(m)
	if refusal != nil {
		return c.conn.Write(*refusal)
	}
	switch {
	case m.Method == "tools/call":
		return c.beginCall(ctx, r)
	case m.Method == "tools/list":
		return c.answer(r, object{"tools": c.describeTools()}.cacheable())
	case m.Method == "initialize" && !r.modern:
		return c.answer(r, c.initialize(r))
	case m.Method == "server/discover" && r.modern:
		return c.answer(r, object{"supportedVersions": versions(), "capabilities": capabilities()}.cacheable())
	case m.Method == "ping" && !r.modern:
		return c.answer(r, object{})
	}
	return c.conn.Write(m.Refuse(message.CodeMethodNotFound, "unknown method"))
}

// answer answers a request with a result, in the form of its version.
func (c *session) answer(r request, result object) error {
	if r.modern {
		result["resultType"] = "complete"
		result["_meta"] = object{metaServerInfo: c.describeServer()}
	}
	a, err := r.Answer(result)
	if err != nil {
		a = r.Refuse(message.CodeInternal, "internal error")
	}
	return c.conn.Write(a)
}
