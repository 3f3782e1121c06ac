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

	"github.com/agentledger/agentledger/internal/mcp/message"
)

// Remote is a server at an address (streamable HTTP). A stream that breaks is not resumed.
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
}

// goodbyeTime bounds the request that ends a session.
const goodbyeTime = 5 * time.Second

// Connect returns a connection. It does no I/O before the first message.
func (r Remote) Connect(context.Context) (Conn, error) {
	if r.MaxBytes == 0 {
		r.MaxBytes = message.DefaultMaxBytes
	}
	ctx, cancel := context.WithCancel(context.Background())
	// No redirect is followed, because the headers belong to one address.
	return &remoteConn{Remote: r, ctx: ctx, cancel: cancel, incoming: make(chan message.Message),
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
	answer, err := c.post(m)
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

func (c *remoteConn) post(m message.Message) (*http.Response, error) {
	line, err := m.AppendLine(nil)
	if err != nil {
		return nil, err
	}
	return c.sendHTTP(c.ctx, http.MethodPost, line)
}

// sendHTTP sends a request. An answer that is no success is an error without the server's text.
func (c *remoteConn) sendHTTP(ctx context.Context, method string, body []byte) (*http.Response, error) {
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
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.version != "" {
		r.Header.Set("Mcp-Protocol-Version", c.version)
	}
	c.mu.Unlock()
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask the MCP server: %w", err)
	}
	if answer.StatusCode/100 != 2 {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("ask the MCP server: status %d", answer.StatusCode)
	}
	return answer, nil
}

// ask sends a request and delivers the messages of its answer. A request without a response is refused.
func (c *remoteConn) ask(m message.Message) {
	answer, err := c.post(m)
	if err == nil {
		if m.Method == "initialize" {
			c.mu.Lock()
			c.session = answer.Header.Get("Mcp-Session-Id")
			c.mu.Unlock()
		}
		err = c.deliverAnswer(m, answer)
		_ = answer.Body.Close()
	}
	if err != nil {
		refused := m.Refuse(message.CodeInternal, "the MCP server can't be reached, or its answer can't be read")
		refused.Local = true
		c.deliver(refused)
	}
}

var errNoResponse = errors.New("the answer has no response")

// deliverAnswer delivers the messages of an answer until the response to m.
func (c *remoteConn) deliverAnswer(m message.Message, answer *http.Response) error {
	media, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if media == "text/event-stream" {
		for data, err := range readEvents(answer.Body, c.MaxBytes) {
			if err != nil {
				return err
			}
			if done, err := c.deliverText(m, data); done || err != nil {
				return err
			}
		}
		return errNoResponse
	}
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
	answer, err := c.sendHTTP(c.ctx, http.MethodGet, nil)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	for data, err := range readEvents(answer.Body, c.MaxBytes) {
		if err != nil {
			return
		}
		if m, err := message.Parse(data); err == nil {
			c.deliver(m)
		}
	}
}

// Close ends the session at the server.
func (c *remoteConn) Close() error {
	c.mu.Lock()
	open := c.session != ""
	c.mu.Unlock()
	if open {
		ctx, cancel := context.WithTimeout(c.ctx, goodbyeTime)
		if answer, err := c.sendHTTP(ctx, http.MethodDelete, nil); err == nil {
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
