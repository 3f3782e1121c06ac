package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/mcp/message"
	"github.com/agentledger/agentledger/internal/syncs"
)

// Remote is a server at an address (streamable HTTP). A stream that ends before the response to its request is resumed,
// if the server has given it an id.
type Remote struct {
	URL      string
	Headers  map[string]string // of each request, for example credentials
	MaxBytes int               // bound of a message; 0 means message.DefaultMaxBytes
}

type remoteConn struct {
	Remote
	http     *http.Client
	ctx      context.Context
	cancel   context.CancelFunc
	incoming chan message.Message
	requests sync.WaitGroup

	mu      sync.Mutex
	session string
	version string
	tools   map[string][]message.Mirrored // by name
	open    map[string]context.CancelFunc // requests of a revision without sessions, by id
}

const (
	// goodbyeTime bounds the request that ends a session.
	goodbyeTime = 5 * time.Second
	// maxResumes bounds the attempts to resume a stream that bring nothing. resumePause and maxPause are the time before
	// one: the former if the server names none, the latter if it names a longer one.
	maxResumes  = 5
	resumePause = time.Second
	maxPause    = time.Minute
)

// Connect returns a connection. It does no I/O before the first message.
func (r Remote) Connect(context.Context) (Conn, error) {
	if r.MaxBytes == 0 {
		r.MaxBytes = message.DefaultMaxBytes
	}
	ctx, cancel := context.WithCancel(context.Background())
	// No redirect is followed, because the headers belong to one address.
	return &remoteConn{Remote: r, ctx: ctx, cancel: cancel, incoming: make(chan message.Message),
		open: map[string]context.CancelFunc{},
		http: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
	}, nil
}

// Read implements Conn.
func (c *remoteConn) Read() (message.Message, error) {
	select {
	case m := <-c.incoming:
		return m, nil
	case <-c.ctx.Done():
		return message.Message{}, io.EOF
	}
}

// Write implements Conn. A request is answered beside later messages, others are sent in order.
func (c *remoteConn) Write(m message.Message) error {
	if m.IsRequest() {
		c.requests.Go(func() { c.ask(m) })
		return nil
	}
	if m.Method == "notifications/cancelled" && c.cancelStateless(m) {
		return nil
	}
	answer, err := c.sendHTTP(c.ctx, http.MethodPost, m, nil)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	_ = answer.Body.Close()
	if m.Method == "notifications/initialized" {
		c.requests.Go(c.listen)
	}
	return nil
}

// cancelStateless ends the request that a cancellation names by closing its stream, which is how a revision without
// sessions cancels. It reports false if there is no such request.
func (c *remoteConn) cancelStateless(m message.Message) bool {
	var named struct {
		ID jsontext.Value `json:"requestId"`
	}
	_ = json.Unmarshal(m.Params, &named) // without an id it names no request
	c.mu.Lock()
	defer c.mu.Unlock()
	cancel := c.open[string(named.ID)]
	if cancel != nil {
		cancel()
	}
	return cancel != nil
}

// sendHTTP sends a message, or with GET none. An answer that is no success is an error without the server's text, unless
// it is an answer of JSON-RPC to a request.
func (c *remoteConn) sendHTTP(ctx context.Context, method string, m message.Message, extra map[string]string) (*http.Response, error) {
	var body []byte
	if method == http.MethodPost {
		var err error
		if body, err = m.AppendLine(nil); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, c.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range c.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodGet {
		r.Header.Set("Accept", "text/event-stream")
	}
	c.mu.Lock()
	headers := map[string]string{"Mcp-Session-Id": c.session, "Mcp-Protocol-Version": c.version}
	if routing, ok := message.RoutingHeaders(m, c.tools); ok {
		headers = routing
	}
	c.mu.Unlock()
	maps.Copy(headers, extra)
	for name, value := range headers {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask the MCP server: %w", err)
	}
	if answer.StatusCode/100 == 2 || m.IsRequest() && mediaOf(answer) == "application/json" {
		return answer, nil
	}
	_ = answer.Body.Close()
	return nil, fmt.Errorf("ask the MCP server: status %d", answer.StatusCode)
}

func mediaOf(answer *http.Response) string {
	media, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return media
}

// ask sends a request and delivers the messages of its answer. A request without a response is refused.
func (c *remoteConn) ask(m message.Message) {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	if _, stateless := message.RoutingHeaders(m, nil); stateless {
		c.mu.Lock()
		c.open[string(m.ID)] = cancel
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.open, string(m.ID))
		}()
	}
	answer, err := c.sendHTTP(ctx, http.MethodPost, m, nil)
	if err == nil {
		if m.Method == "initialize" {
			c.mu.Lock()
			c.session = answer.Header.Get("Mcp-Session-Id")
			c.mu.Unlock()
		}
		err = c.deliverAnswer(ctx, m, answer)
	}
	if err != nil {
		refused := m.Refuse(message.CodeInternal, "the MCP server can't be reached, or its answer can't be read")
		refused.Local = true
		c.deliver(refused)
	}
}

var errNoResponse = errors.New("the answer has no response")

// deliverAnswer delivers the messages of an answer until the response to m, and closes it.
func (c *remoteConn) deliverAnswer(ctx context.Context, m message.Message, answer *http.Response) error {
	if mediaOf(answer) == "text/event-stream" {
		return c.deliverStream(ctx, m, answer)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, int64(c.MaxBytes)+1))
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if len(text) > c.MaxBytes {
		return message.ErrTooLong
	}
	done, err := c.deliverText(m, text)
	if err == nil && !done {
		err = errNoResponse
	}
	return err
}

// deliverStream delivers the events of a stream until the response to m. A server may end the stream before that and
// expect that it is resumed (Last-Event-ID), for example because the connection would be idle for long.
func (c *remoteConn) deliverStream(ctx context.Context, m message.Message, answer *http.Response) error {
	var last event
	for idle := 0; ; idle++ {
		for e, err := range readEvents(answer.Body, c.MaxBytes) {
			if err != nil {
				break // the stream has broken
			}
			if e.id != "" && e.id != last.id {
				last.id, idle = e.id, 0
			}
			if e.wait > 0 {
				last.wait = e.wait
			}
			if len(e.data) == 0 {
				continue
			}
			if done, err := c.deliverText(m, e.data); done || err != nil {
				_ = answer.Body.Close()
				return err
			}
		}
		_ = answer.Body.Close()
		if _, stateless := message.RoutingHeaders(m, nil); stateless || last.id == "" || idle >= maxResumes {
			return errNoResponse
		}
		pause := resumePause
		if last.wait > 0 {
			pause = min(last.wait, maxPause)
		}
		if err := syncs.Sleep(ctx, pause); err != nil {
			return err
		}
		next, err := c.sendHTTP(ctx, http.MethodGet, message.Message{}, map[string]string{"Last-Event-Id": last.id})
		if err != nil {
			return err
		}
		answer = next
	}
}

// deliverText delivers one message, and reports whether it is the response to m.
func (c *remoteConn) deliverText(m message.Message, text []byte) (bool, error) {
	got, err := message.Parse(text)
	if err != nil {
		return false, err
	}
	done := got.IsResponse() && slices.Equal(got.ID, m.ID)
	if done && m.Method == "initialize" {
		var result struct {
			Version string `json:"protocolVersion"`
		}
		if json.Unmarshal(got.Result, &result) == nil {
			c.mu.Lock()
			c.version = result.Version
			c.mu.Unlock()
		}
	}
	if done && m.Method == "tools/list" {
		c.mu.Lock()
		c.tools = message.MergeMirrored(c.tools, got.Result)
		c.mu.Unlock()
	}
	c.deliver(got)
	return done, nil
}

func (c *remoteConn) deliver(m message.Message) {
	select {
	case c.incoming <- m:
	case <-c.ctx.Done():
	}
}

// listen delivers the messages that belong to no request. A server may have no such stream.
func (c *remoteConn) listen() {
	answer, err := c.sendHTTP(c.ctx, http.MethodGet, message.Message{}, nil)
	if err == nil {
		_ = c.deliverStream(c.ctx, message.Message{ID: jsontext.Value("null")}, answer) // ends with the connection
	}
}

// Close ends the session at the server.
func (c *remoteConn) Close() error {
	c.mu.Lock()
	open := c.session != ""
	c.mu.Unlock()
	if open {
		ctx, cancel := context.WithTimeout(c.ctx, goodbyeTime)
		if answer, err := c.sendHTTP(ctx, http.MethodDelete, message.Message{}, nil); err == nil {
			_ = answer.Body.Close()
		}
		cancel()
	}
	c.cancel()
	c.requests.Wait()
	c.http.CloseIdleConnections()
	return nil
}

// Format leaves out the headers, because these can be credentials.
func (r Remote) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "server by URL with headers %v", slices.Sorted(maps.Keys(r.Headers)))
}
