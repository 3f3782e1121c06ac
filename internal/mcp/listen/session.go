package listen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/mcp/message"
)

// maxBacklog is the number of messages that wait for a stream of their session.
const maxBacklog = 64

var errBacklog = errors.New("no stream is open, and too many messages wait for one")

// stream is an open answer of server-sent events.
type stream struct {
	messages chan message.Message
	gone     chan struct{} // closed when the client has left
}

// session is the connection of one client. It implements gateway.Caller.
type session struct {
	name     string
	owner    string // the caller whose token has opened it, "" for none
	origin   string // of the web page that has opened it, "" for another client
	ctx      context.Context
	end      context.CancelFunc
	incoming chan message.Message

	mu         sync.Mutex
	streams    map[string]*stream // by the id of the request
	tokens     map[string]string  // ids of requests by progressToken
	standalone *stream
	backlog    []message.Message
	used       time.Time
}

func newSession(name, owner, origin string, ctx context.Context, end context.CancelFunc) *session {
	return &session{name: name, owner: owner, origin: origin, ctx: ctx, end: end, incoming: make(chan message.Message),
		streams: map[string]*stream{}, tokens: map[string]string{}, used: time.Now()}
}

// endIdle ends the session after a time without requests and streams.
func (s *session) endIdle(idle time.Duration) *time.Timer {
	var timer *time.Timer
	s.mu.Lock()
	defer s.mu.Unlock()
	timer = time.AfterFunc(idle, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		rest := idle - time.Since(s.used)
		if rest > 0 || len(s.streams) > 0 || s.standalone != nil {
			timer.Reset(max(rest, time.Second))
			return
		}
		s.end()
	})
	return timer
}

// hand gives a message to the gateway. It reports false when the session or the request has ended.
func (s *session) hand(ctx context.Context, m message.Message) bool {
	s.mu.Lock()
	s.used = time.Now()
	s.mu.Unlock()
	select {
	case s.incoming <- m:
		return true
	case <-s.ctx.Done():
	case <-ctx.Done():
	}
	return false
}

// Read returns the next message of the client, io.EOF after the session's end.
func (s *session) Read() (message.Message, error) {
	select {
	case m := <-s.incoming:
		return m, nil
	case <-s.ctx.Done():
		return message.Message{}, io.EOF
	}
}

// Write sends a message by the stream that it belongs to. A response to a client that has left is dropped.
func (s *session) Write(m message.Message) error {
	s.mu.Lock()
	to := s.streamFor(m)
	if to == nil {
		defer s.mu.Unlock()
		if m.IsResponse() {
			return nil
		}
		if len(s.backlog) >= maxBacklog {
			return errBacklog
		}
		s.backlog = append(s.backlog, m)
		return nil
	}
	s.mu.Unlock()
	select {
	case to.messages <- m:
	case <-to.gone:
	case <-s.ctx.Done():
	}
	return nil
}

// streamFor returns the stream of a response or of a request's progress, otherwise the client's own stream
// or any open one.
func (s *session) streamFor(m message.Message) *stream {
	if m.IsResponse() {
		return s.streams[string(m.ID)]
	}
	if m.Method == "notifications/progress" {
		if to := s.streams[s.tokens[string(progressToken(m.Params))]]; to != nil {
			return to
		}
	}
	if s.standalone != nil {
		return s.standalone
	}
	for _, any := range s.streams {
		return any
	}
	return nil
}

func progressToken(params jsontext.Value) jsontext.Value {
	var p struct {
		Token jsontext.Value `json:"progressToken"`
		Meta  struct {
			Token jsontext.Value `json:"progressToken"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(params, &p) // without a token the message belongs to no request
	if p.Token != nil {
		return p.Token
	}
	return p.Meta.Token
}

// serveRequest hands a request to the gateway and streams the answers until its response.
func (s *session) serveRequest(w http.ResponseWriter, r *http.Request, m message.Message) {
	own := &stream{make(chan message.Message), make(chan struct{})}
	token := string(progressToken(m.Params))
	s.mu.Lock()
	_, used := s.streams[string(m.ID)]
	if !used {
		s.streams[string(m.ID)] = own
		if token != "" {
			s.tokens[token] = string(m.ID)
		}
	}
	s.mu.Unlock()
	if used {
		http.Error(w, "the id is that of a request without an answer", http.StatusBadRequest)
		return
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, string(m.ID))
		delete(s.tokens, token)
		close(own.gone)
	}()
	if !s.hand(r.Context(), m) {
		http.Error(w, "the session is over", http.StatusNotFound)
		return
	}
	s.copyStream(w, r, own, string(m.ID))
}

// serveStandalone streams the messages that belong to no request.
func (s *session) serveStandalone(w http.ResponseWriter, r *http.Request) {
	own := &stream{make(chan message.Message), make(chan struct{})}
	s.mu.Lock()
	if s.standalone != nil {
		s.mu.Unlock()
		http.Error(w, "the session has such a stream", http.StatusConflict)
		return
	}
	s.standalone = own
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.standalone = nil
		s.used = time.Now()
		close(own.gone)
	}()
	s.copyStream(w, r, own, "")
}

// copyStream writes events until the response to a request, or the end of client or session.
func (s *session) copyStream(w http.ResponseWriter, r *http.Request, own *stream, last string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	_ = flush() // a client that has left is seen at the first message
	s.mu.Lock()
	waiting := s.backlog
	s.backlog = nil
	s.mu.Unlock()
	for {
		var m message.Message
		if len(waiting) > 0 {
			m, waiting = waiting[0], waiting[1:]
		} else {
			select {
			case m = <-own.messages:
			case <-r.Context().Done():
				return
			case <-s.ctx.Done():
				return
			}
		}
		line, err := m.AppendLine([]byte("event: message\ndata: "))
		if err != nil {
			return
		}
		if _, err := fmt.Fprintf(w, "%s\n", line); err != nil || flush() != nil {
			return
		}
		if last != "" && m.IsResponse() && string(m.ID) == last {
			return
		}
	}
}
