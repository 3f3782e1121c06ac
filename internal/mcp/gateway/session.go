package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/mcp/message"
	"github.com/agentledger/agentledger/internal/mcp/upstream"
)

// ErrServerEnded ends a session whose only server has ended.
var ErrServerEnded = errors.New("the MCP server has ended")

// link is the connection of one session with one server.
type link struct {
	index        int
	name         string
	conn         upstream.Conn
	gone         chan struct{} // closed when the server has ended
	capabilities map[string]jsontext.Value
}

// exchange names a request that a server has not answered yet.
type exchange struct {
	server int
	id     string
}

// session joins one client with its connections to the servers.
type session struct {
	gate     *Gateway
	caller   Caller
	links    []*link
	trace    id.Trace
	ctx      context.Context // ends with the session
	hurry    chan struct{}   // closed when running calls may not take longer
	running  sync.WaitGroup  // calls
	fetching sync.WaitGroup  // answers that take more than one step
	owners   *owners         // used with several servers

	mu        sync.Mutex
	pending   map[exchange]pending  // requests that a server has not answered
	asked     map[exchange]string   // progress tokens of servers' requests that the client has not answered
	tokens    map[exchange]struct{} // progress tokens of tasks, by server
	calls     map[string]*call      // by the id of the request
	waiting   int                   // calls that wait for people
	suspended int                   // calls that wait for the client's input, or for the end of a task
	closing   bool                  // no call begins any more
	revision  string                // negotiated by initialize, "" before
	stateless bool                  // a request has named a revision without a handshake
	refusals  int                   // messages that reached nobody

	subscriptions map[string]*subscription // by the id of the request; used with several servers
	discovered    bool                     // the capabilities of several servers are known

	definitions map[id.Tool]id.Hash // digests of the listed tools
	changes     map[id.Tool]id.Hash // changed definitions that are recorded
	changed     int                 // number of recorded changes
}

// pending is a request that a server has not answered.
type pending struct {
	method string
	token  string // of its progress, "" for none
	take   func(message.Message)
}

// Serve serves one client until it has gone, its only server has ended, or ctx ends. Calls that run get
// Config.Grace to end. A client that goes is no error. origin is that of a web page, "" for any other client.
func (g *Gateway) Serve(ctx context.Context, caller Caller, origin string) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	s := &session{gate: g, caller: caller, trace: newTrace(), ctx: ctx, hurry: make(chan struct{}), owners: newOwners(),
		pending: map[exchange]pending{}, asked: map[exchange]string{}, tokens: map[exchange]struct{}{}, calls: map[string]*call{},
		subscriptions: map[string]*subscription{}, definitions: map[id.Tool]id.Hash{}, changes: map[id.Tool]id.Hash{}}
	defer s.reportRefusals()
	if err := s.connectServers(g.serversFor(origin)); err != nil {
		return err
	}
	var readers sync.WaitGroup
	for _, l := range s.links {
		readers.Go(func() {
			s.readServer(l)
			if len(s.links) == 1 {
				end(ErrServerEnded)
			}
		})
	}
	go func() { end(s.readCaller()) }() // ends when the transport of the client is closed
	<-ctx.Done()
	s.finishCalls()
	err := s.closeServers()
	readers.Wait()
	s.fetching.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, io.EOF) && !errors.Is(cause, context.Canceled) {
		err = errors.Join(cause, err)
	}
	return err
}

// serversFor returns the servers that a client sees.
func (g *Gateway) serversFor(origin string) []Server {
	return slices.DeleteFunc(slices.Clone(g.Servers), func(s Server) bool {
		return origin != "" && !slices.Contains(s.Origins, origin)
	})
}

func (s *session) connectServers(servers []Server) error {
	if len(servers) == 0 {
		return errors.New("no server allows the origin")
	}
	for i, server := range servers {
		conn, err := server.Connect(s.ctx)
		if err != nil {
			return errors.Join(fmt.Errorf("connect with %s: %w", server.Name, err), s.closeServers())
		}
		s.links = append(s.links, &link{index: i, name: server.Name, conn: conn, gone: make(chan struct{})})
	}
	return nil
}

func (s *session) closeServers() error {
	failures := make([]error, len(s.links))
	var closing sync.WaitGroup
	for i, l := range s.links {
		closing.Go(func() { failures[i] = l.conn.Close() })
	}
	closing.Wait()
	return errors.Join(failures...)
}

// finishCalls waits for the calls that run. Those that wait have been interrupted, because ctx has ended.
func (s *session) finishCalls() {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(s.gate.Grace):
	}
	close(s.hurry)
	<-ended
}

// readCaller handles the client's messages until there are no more, and says why.
func (s *session) readCaller() error {
	for {
		m, err := s.caller.Read()
		unreadable, ok := errors.AsType[*message.CallError](err)
		switch {
		case ok:
			s.answer(RefuseCall(unreadable.ID, unreadable.Err))
		case errors.Is(err, message.ErrMalformed):
			s.answer(message.Message{}.Refuse(message.CodeParse, err.Error()))
		case errors.Is(err, message.ErrTooLong):
			s.answer(message.Message{}.Refuse(message.CodeInvalidRequest, err.Error()))
		case err != nil:
			return err
		default:
			s.handleCaller(m)
		}
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
	}
}

func (s *session) handleCaller(m message.Message) {
	if m.IsResponse() {
		s.passResponse(m)
		return
	}
	k := clientNotification
	if m.IsRequest() {
		k = clientRequest
	}
	revision, known := s.revisionFor(m)
	if !known {
		s.refuse(k, m, "", "unknown revision of the protocol")
		if m.IsRequest() {
			s.answer(RefuseRevision(m, revision))
		}
		return
	}
	switch t := treatmentOf(k, m.Method, revision); {
	case t == refused:
		s.refuse(k, m, "", "not a method of "+revision)
		if m.IsRequest() {
			s.answer(m.Refuse(message.CodeMethodNotFound, fmt.Sprintf("%.64q is no method of MCP %s", m.Method, revision)))
		}
	case t == decided:
		s.startCall(m)
	case m.IsRequest():
		s.passRequest(m)
	default:
		s.passNotification(m)
	}
}

// readServer handles a server's messages until there are no more.
func (s *session) readServer(l *link) {
	defer s.failPending(l)
	for {
		m, err := l.conn.Read()
		switch {
		case errors.Is(err, message.ErrMalformed), errors.Is(err, message.ErrTooLong):
			s.gate.OnError(fmt.Errorf("message of %s skipped: %w", l.name, err))
		case err != nil:
			if !errors.Is(err, io.EOF) && s.ctx.Err() == nil {
				s.gate.OnError(fmt.Errorf("read from %s: %w", l.name, err))
			}
			return
		case m.IsResponse():
			s.takeResponse(l, m)
		default:
			s.handleServer(l, m)
		}
	}
}

// handleServer passes a server's request or notification to the client.
func (s *session) handleServer(l *link, m message.Message) {
	k := serverNotification
	if m.IsRequest() {
		k = serverRequest
	}
	revision, reason := s.serverRevision(), ""
	switch {
	case treatmentOf(k, m.Method, revision) == refused:
		reason = "not a method of " + revision
	case m.IsRequest() && !s.noteAsked(l, m):
		reason = "too many requests without an answer, or the id is in use"
	case m.Method == "notifications/cancelled" && !s.mayCancel(l, m):
		reason = "the server has made no such request"
	case m.Method == "notifications/progress" && !s.mayReport(l, m):
		reason = "the server has no request with this progress token"
	case m.Method == "notifications/subscriptions/acknowledged" && len(s.links) > 1 && !s.hasSubscription(m):
		reason = "the client has no such subscription"
	case m.Method == "notifications/resources/updated" && len(s.links) > 1 && !s.ownsUpdate(l, m):
		reason = "the server has not listed the resource"
	}
	if reason == "" {
		if strings.HasPrefix(m.Method, "notifications/tasks") {
			s.takeTask(l, m.Method, "", m.Params)
		}
		if len(s.links) == 1 || m.IsRequest() || !s.takeSubscribed(l, m) {
			s.answer(s.renameAsked(l, m))
		}
		return
	}
	s.refuse(k, m, l.name+": ", reason)
	if m.IsRequest() {
		s.send(l, m.Refuse(message.CodeMethodNotFound, reason))
	}
}

// noteAsked notes a server's request. It reports false if the id is in use, or if too many requests have no answer.
func (s *session) noteAsked(l *link, m message.Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := exchange{l.index, string(m.ID)}
	if _, used := s.asked[key]; used || len(s.asked) >= s.gate.Bounds.Requests*len(s.links) {
		return false
	}
	s.asked[key] = string(m.ProgressToken())
	return true
}

// mayCancel reports whether a server may end what its cancellation names: a request of its own, or the
// client's subscription at this server.
func (s *session) mayCancel(l *link, m message.Message) bool {
	key := exchange{l.index, string(cancelledID(m))}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, own := s.asked[key]
	delete(s.asked, key) // an answer that comes all the same reaches nobody
	return own || s.pending[key].method == "subscriptions/listen"
}

// takeResponse hands a response to the exchange that waits for it. Late responses are dropped.
func (s *session) takeResponse(l *link, m message.Message) {
	s.mu.Lock()
	key := exchange{l.index, string(m.ID)}
	open := s.pending[key]
	delete(s.pending, key)
	if open.token != "" && len(s.tokens) < maxTaskTokens && namesTask(m.Result) {
		s.tokens[exchange{l.index, open.token}] = struct{}{}
	}
	s.mu.Unlock()
	if open.take != nil {
		open.take(m)
	}
}

// failPending answers all that a server has not answered.
func (s *session) failPending(l *link) {
	close(l.gone)
	s.mu.Lock()
	var takers []func(message.Message)
	var failures []message.Message
	for key, open := range s.pending {
		if key.server == l.index {
			request := message.Message{ID: jsontext.Value(key.id)}
			takers = append(takers, open.take)
			failures = append(failures, refuseLocally(request, "the MCP server "+l.name+" has ended"))
			delete(s.pending, key)
		}
	}
	s.mu.Unlock()
	for i, take := range takers {
		take(failures[i])
	}
}

// await registers the taker of a response. It reports false when the id is in use, or too many requests are.
func (s *session) await(l *link, m message.Message, take func(message.Message)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := exchange{l.index, string(m.ID)}
	if _, used := s.pending[key]; used || len(s.pending) >= s.gate.Bounds.Requests*len(s.links)+s.gate.Bounds.Calls {
		return false
	}
	s.pending[key] = pending{m.Method, string(m.ProgressToken()), take}
	return true
}

// answer sends a message to the client. A client that can't be reached ends the session by its input.
func (s *session) answer(m message.Message) {
	if err := s.caller.Write(m); err != nil && s.ctx.Err() == nil {
		s.gate.OnError(fmt.Errorf("write to the client: %w", err))
	}
}

// send sends a message to a server. A server that can't be reached ends by its output.
func (s *session) send(l *link, m message.Message) {
	if err := l.conn.Write(m); err != nil && s.ctx.Err() == nil {
		s.gate.OnError(fmt.Errorf("write to %s: %w", l.name, err))
		if m.IsRequest() {
			s.takeResponse(l, refuseLocally(m, "the MCP server "+l.name+" can't be reached"))
		}
	}
}

// refuseLocally answers a request in the place of its server.
func refuseLocally(request message.Message, text string) message.Message {
	m := request.Refuse(message.CodeInternal, text)
	m.Local = true
	return m
}

func (s *session) forgetExchange(l *link, requestID jsontext.Value) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, exchange{l.index, string(requestID)})
}
