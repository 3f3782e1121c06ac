// Package gateway stands between an MCP client and MCP servers. It runs each tool call as a guarded action, passes the
// other messages that the negotiated revision of the protocol defines, and refuses the rest. The table methods contains
// what happens to each.
//
// Invariants:
//
//   - A tools/call reaches a server only from inside of guard.Guard.Run, so at most once, and after the ledger
//     has accepted its intent.
//   - A call that is denied, that waits or whose decision is not known is answered with isError true, and no
//     byte of it reaches a server.
//   - The server receives the canonical form of the arguments that were judged, never the client's bytes.
//   - A message that the negotiated revision does not define for its direction, and a response to no request,
//     reach nobody. They are counted and reported.
//   - Params and results of passed messages keep their bytes. Changed are only names and cursors, and only with
//     several servers.
//   - A session has its own connections to the servers, its own calls and its own bounds. Sessions share the
//     journal and the kept questions, which belong to a principal.
//   - The session of a web page has the servers that allow the page's origin, and no connection to any other.
//   - Ids of requests, messages, calls and questions are bounded.
package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/mcp/message"
	"github.com/agentledger/agentledger/internal/mcp/upstream"
)

// Server is an MCP server behind the gateway.
type Server struct {
	Name    string // part of its tools' names; see ValidServerName
	Connect func(context.Context) (upstream.Conn, error)
	Origins []string // of the web pages that see the server
}

// Principal says for whom a call is made. A caller that has authenticated itself counts first, then the first of the
// three that is there.
type Principal struct {
	Meta   string // member of the call's _meta that names the principal, "" for none
	Header bool   // the transport names the principal
	Fixed  string // principal of every call, "" for none
}

// Bounds bound one session. A zero field has its default.
type Bounds struct {
	Calls    int // tool calls at once, those that wait included; default 128
	Waiting  int // tool calls at once that wait for people; default 16
	Requests int // other requests at once; default 256
}

// Config configures a gateway. Client, Signer, Journal, Questions and at least one of Servers are required.
type Config struct {
	Client    *client.Client
	Signer    *client.Signer
	Journal   *guard.Journal
	Questions *Questions
	Servers   []Server

	Rules      []Rule   // how calls are recorded; the first rule that fits a tool counts
	Hide       []string // patterns of tools that tools/list leaves out
	HideDenied bool     // tools/list leaves out tools that the policy denies without arguments
	Pins       *Pins    // definitions of used tools; nil for no check
	// RefuseChanged refuses calls of a tool whose definition has changed since its first use, until Accepted has the new
	// digest.
	RefuseChanged bool
	Accepted      map[id.Tool]id.Hash
	Principal     Principal
	OnBehalfOf    *event.OnBehalfOf // of every call; nil for none
	// SharedByCallers indicates that the sessions can be those of different callers. An approval then belongs to a caller
	// that the transport or the call names, or else to its session.
	SharedByCallers bool
	Wait            time.Duration // how long a call waits for people; default 50 s
	Decide          time.Duration // how long a call waits for the service's decision; default 50 s
	Progress        time.Duration // between two notifications of a waiting call; default 5 s
	Grace           time.Duration // how long running calls may take after the client has gone; default 5 s
	Bounds          Bounds
	OnError         func(error) // receives errors that no answer tells; nil drops them
}

// Gateway serves sessions. It is made by New.
type Gateway struct {
	Config
	acts *openActs
	wake chan struct{} // holds one element when there are results to send
}

// New checks a configuration and fills in defaults. It does no I/O.
func New(c Config) (*Gateway, error) {
	if c.Client == nil || c.Signer == nil || c.Journal == nil || c.Questions == nil || len(c.Servers) == 0 {
		return nil, errors.New("new gateway: client, signer, journal, questions and servers are required")
	}
	names := map[string]bool{}
	for _, s := range c.Servers {
		if !ValidServerName(s.Name) || names[s.Name] {
			return nil, fmt.Errorf("new gateway: server name %.64q: not letters, digits and -, or there twice", s.Name)
		}
		names[s.Name] = true
	}
	for _, r := range c.Rules {
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("new gateway: %w", err)
		}
	}
	for _, pattern := range c.Hide {
		if err := checkPattern(pattern); err != nil {
			return nil, fmt.Errorf("new gateway: hide: %w", err)
		}
	}
	setDefault(&c.Wait, 50*time.Second)
	setDefault(&c.Decide, 50*time.Second)
	setDefault(&c.Progress, 5*time.Second)
	setDefault(&c.Grace, 5*time.Second)
	setDefault(&c.Bounds.Calls, 128)
	setDefault(&c.Bounds.Waiting, 16)
	setDefault(&c.Bounds.Requests, 256)
	if c.OnError == nil {
		c.OnError = func(error) {}
	}
	return &Gateway{c, newOpenActs(), make(chan struct{}, 1)}, nil
}

func setDefault[T comparable](field *T, value T) {
	if zero := *new(T); *field == zero {
		*field = value
	}
}

// Caller is the connection with an MCP client.
type Caller interface {
	Read() (message.Message, error)
	Write(message.Message) error
}

// newTrace names the calls of one session.
func newTrace() id.Trace {
	var name [16]byte
	_, _ = rand.Read(name[:]) // never fails
	return id.Trace(fmt.Sprintf("trc_%x", name))
}
