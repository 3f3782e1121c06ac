package listen

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

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

// inbox holds the client's messages until the gateway reads them. It ends after a time without use.
type inbox struct {
	ctx      context.Context
	end      context.CancelFunc
	incoming chan message.Message
	used     *atomic.Int64 // time of the last use in nanoseconds
}

func newInbox(ctx context.Context, end context.CancelFunc) inbox {
	i := inbox{ctx, end, make(chan message.Message), &atomic.Int64{}}
	i.touch()
	return i
}

func (i inbox) touch() { i.used.Store(time.Now().UnixNano()) }

// hand gives a message to the gateway. It reports false if the inbox or the request has ended.
func (i inbox) hand(ctx context.Context, m message.Message) bool {
	i.touch()
	select {
	case i.incoming <- m:
		return true
	case <-i.ctx.Done():
	case <-ctx.Done():
	}
	return false
}

// Read returns the next message of the client, io.EOF after the end.
func (i inbox) Read() (message.Message, error) {
	select {
	case m := <-i.incoming:
		return m, nil
	case <-i.ctx.Done():
		return message.Message{}, io.EOF
	}
}

// endIdle ends the inbox when it has not been used for a time and inUse reports false.
func (i inbox) endIdle(idle time.Duration, inUse func() bool) *time.Timer {
	var timer *time.Timer
	var made sync.Mutex // held until timer is set
	made.Lock()
	defer made.Unlock()
	timer = time.AfterFunc(idle, func() {
		made.Lock()
		defer made.Unlock()
		rest := idle - time.Since(time.Unix(0, i.used.Load()))
		if rest > 0 || inUse() {
			timer.Reset(max(rest, time.Second))
			return
		}
		i.end()
	})
	return timer
}

// session is the connection of one client. It implements gateway.Caller.
type session struct {
	inbox
	name   string
	owner  string // the caller whose token has opened it, "" for none
	origin string // of the web page that has opened it, "" for another client

	mu         sync.Mutex
	streams    map[string]*stream // by the id of the request
	tokens     map[string]string  // ids of requests by progressToken
	standalone *stream
	backlog    []message.Message
}

func newSession(name, owner, origin string, in inbox) *session {
	return &session{inbox: in, name: name, owner: owner, origin: origin, streams: map[string]*stream{}, tokens: map[string]string{}}
}

func (s *session) inUse() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams) > 0 || s.standalone != nil
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
		if to := s.streams[s.tokens[string(m.ProgressToken())]]; to != nil {
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

// serveRequest hands a request to the gateway and streams the answers until its response.
func (s *session) serveRequest(w http.ResponseWriter, r *http.Request, m message.Message) {
	own := &stream{make(chan message.Message), make(chan struct{})}
	token := string(m.ProgressToken())
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
		s.touch()
		close(own.gone)
	}()
	s.copyStream(w, r, own, "")
}

// copyStream writes events until the response to a request, or the end of client or session.
func (s *session) copyStream(w http.ResponseWriter, r *http.Request, own *stream, last string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // a client that has left is seen at the first message
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
		if writeEvent(w, m) != nil {
			return
		}
		if last != "" && m.IsResponse() && string(m.ID) == last {
			return
		}
	}
}
