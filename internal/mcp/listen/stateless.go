package listen

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/mcp/gateway"
	"github.com/agentledger/agentledger/internal/mcp/message"
)

const versionHeader = "Mcp-Protocol-Version"

// readStateless returns the revision that a message names in its _meta, and reports whether the message belongs to a
// revision without sessions, which its _meta or its header names.
func readStateless(r *http.Request, m message.Message) (revision string, ok bool) {
	revision = m.Revision()
	handshake := gateway.HandshakeRevisions()
	for _, named := range [...]string{revision, r.Header.Get(versionHeader)} {
		ok = ok || named != "" && !slices.Contains(handshake, named)
	}
	return revision, ok
}

// checkMeta returns the refusal of a request whose _meta is not complete, or whose revision is not the one that is served.
func checkMeta(r *http.Request, m message.Message, revision string) (refusal message.Message, refused bool) {
	var capabilities map[string]jsontext.Value
	header := r.Header.Get(versionHeader)
	switch {
	case revision == "":
		return m.Refuse(message.CodeInvalidParams, "params: _meta must name the protocol version"), true
	case header != revision:
		return m.Refuse(message.CodeHeaderMismatch, "header mismatch: "+versionHeader+" differs from the body"), true
	case revision != message.StatelessRevision:
		return gateway.RefuseRevision(m, revision), true
	case json.Unmarshal(m.Meta()["io.modelcontextprotocol/clientCapabilities"], &capabilities) != nil || capabilities == nil:
		return m.Refuse(message.CodeInvalidParams, "params: _meta must have the client's capabilities"), true
	}
	return message.Message{}, false
}

// checkHeaders returns why the headers of a message do not repeat its body, "" if they do.
func checkHeaders(r *http.Request, m message.Message, tools map[string][]message.Mirrored) string {
	want, _ := message.RoutingHeaders(m, tools)
	for header, value := range want {
		given := r.Header.Values(header)
		if len(given) != 1 {
			return header + " must be there once"
		}
		got, gotOK := message.DecodeHeader(given[0])
		wanted, _ := message.DecodeHeader(value)
		if !gotOK || got != wanted {
			return header + " differs from the body"
		}
	}
	return ""
}

// serveStateless serves one request of a revision without sessions. The requests of a caller share the connections to
// the servers.
func (h *Handler) serveStateless(w http.ResponseWriter, r *http.Request, m message.Message, revision, caller string) {
	if refusal, refused := checkMeta(r, m, revision); refused {
		writeMessage(w, refusal, http.StatusBadRequest)
		return
	}
	p := h.openPool(r.Header.Get("Origin"), caller)
	if p == nil {
		http.Error(w, "too many sessions", http.StatusServiceUnavailable)
		return
	}
	if reason := checkHeaders(r, m, p.mirrored()); reason != "" {
		writeMessage(w, m.Refuse(message.CodeHeaderMismatch, "header mismatch: "+reason), http.StatusBadRequest)
		return
	}
	m.Stateless = true
	if !m.IsRequest() { // the gateway reports it; over HTTP this revision has no notification
		_ = p.hand(r.Context(), m)
		http.Error(w, "no notification of "+message.StatelessRevision+" is sent by HTTP", http.StatusBadRequest)
		return
	}
	p.serve(w, r, m)
}

// writeMessage answers a request with one JSON document.
func writeMessage(w http.ResponseWriter, m message.Message, status int) {
	line, err := m.AppendLine(nil)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(line) // a client that has left gets nothing
}

// statusOf returns the status that the protocol demands for an answer.
func statusOf(m message.Message) int {
	var failed message.Error
	if m.Error == nil || json.Unmarshal(m.Error, &failed) != nil {
		return http.StatusOK
	}
	switch failed.Code {
	case message.CodeMethodNotFound:
		return http.StatusNotFound
	case message.CodeHeaderMismatch, message.CodeMissingCapability, message.CodeUnsupportedRevision:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// poolName names the requests that share connections: those of one caller and one web page.
type poolName struct{ origin, caller string }

// pool is the connection of the requests of one caller with the gateway. Each request has an id and a progress token of
// its own there, because different clients use the same ones. It implements gateway.Caller.
type pool struct {
	inbox

	mu    sync.Mutex
	last  int
	open  map[string]*statelessRequest  // by the text of the id
	tools map[string][]message.Mirrored // by the names of the lists that clients have seen
}

// mirrored returns the arguments that headers repeat. The map is never changed.
func (p *pool) mirrored() map[string][]message.Mirrored {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tools
}

type statelessRequest struct {
	method    string
	id, token jsontext.Value // as the client has them
	messages  chan message.Message
	abandon   context.CancelFunc
	gone      <-chan struct{} // closed when the client has left, or after abandon
}

const (
	maxQueued = 16               // messages of a request that its client has not read
	maxSlow   = 2 * time.Second  // how long a message waits until they are fewer
	writeTime = 30 * time.Second // for one message to a client
)

// openPool returns the pool of a caller, or nil if there are too many sessions.
func (h *Handler) openPool(origin, caller string) *pool {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := poolName{origin, caller}
	if p := h.pools[name]; p != nil && p.ctx.Err() == nil {
		return p
	}
	if len(h.sessions)+len(h.pools) >= h.Sessions || h.ctx.Err() != nil {
		return nil
	}
	ctx, end := context.WithCancel(h.ctx)
	p := &pool{inbox: newInbox(ctx, end), open: map[string]*statelessRequest{}}
	h.pools[name] = p
	h.serving.Go(func() {
		defer end()
		defer p.endIdle(h.Idle, p.inUse).Stop()
		_ = h.Serve(ctx, p, origin) // its errors are reported by the gateway
		end()
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.pools[name] == p {
			delete(h.pools, name)
		}
	})
	return p
}

// Write implements gateway.Caller. A message that belongs to no open request is dropped. A request whose client does not
// read its messages is abandoned, because it would delay the other requests.
func (p *pool) Write(m message.Message) error {
	to, m := p.receiver(m)
	if to == nil {
		return nil
	}
	select {
	case to.messages <- m:
		return nil
	default:
	}
	slow := time.NewTimer(maxSlow)
	defer slow.Stop()
	select {
	case to.messages <- m:
	case <-to.gone:
	case <-slow.C:
		to.abandon()
	case <-p.ctx.Done():
	}
	return nil
}

// receiver returns the request that a message belongs to, and the message as its client knows it.
func (p *pool) receiver(m message.Message) (*statelessRequest, message.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.IsResponse() {
		to := p.open[string(m.ID)]
		if to == nil {
			return nil, m
		}
		m.ID = to.id
		if to.method == "tools/list" && m.Error == nil {
			p.tools = message.MergeMirrored(p.tools, m.Result)
		}
		return to, m
	}
	var err error
	var to *statelessRequest
	switch subscription, token := m.Meta()[message.MetaSubscription], m.ProgressToken(); {
	case subscription != nil:
		if to = p.open[string(subscription)]; to != nil {
			m.Params, err = message.ReplaceMeta(m.Params, message.MetaSubscription, to.id)
		}
	case token != nil:
		if to = p.open[string(token)]; to != nil {
			m.Params, err = message.ReplaceMember(m.Params, "progressToken", to.token)
		}
	case m.Method == "notifications/message" && len(p.open) == 1: // it names no request
		for _, only := range p.open {
			to = only
		}
	}
	if err != nil {
		return nil, m
	}
	return to, m
}

// enter gives a request an id and a progress token that no other request has. The request ends with ctx.
func (p *pool) enter(ctx context.Context, m message.Message) (*statelessRequest, message.Message, error) {
	ctx, abandon := context.WithCancel(ctx)
	own := &statelessRequest{method: m.Method, id: m.ID, token: m.ProgressToken(), messages: make(chan message.Message, maxQueued), abandon: abandon, gone: ctx.Done()}
	p.mu.Lock()
	p.last++
	m.ID = jsontext.Value(strconv.Itoa(p.last))
	p.open[string(m.ID)] = own
	p.mu.Unlock()
	if own.token == nil {
		return own, m, nil
	}
	var err error
	m.Params, err = message.ReplaceMeta(m.Params, message.MetaProgress, m.ID)
	return own, m, err
}

func (p *pool) leave(name jsontext.Value, own *statelessRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, string(name))
	p.touch()
	own.abandon()
}

func (p *pool) inUse() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open) > 0
}

// serve hands a request to the gateway and writes its answer: one document, or a stream if a notification comes first.
// A client that leaves cancels its request.
func (p *pool) serve(w http.ResponseWriter, r *http.Request, m message.Message) {
	own, m, err := p.enter(r.Context(), m)
	defer p.leave(m.ID, own)
	if err != nil {
		writeMessage(w, message.Message{ID: own.id}.Refuse(message.CodeInvalidParams, "params can't be read"), http.StatusBadRequest)
		return
	}
	if !p.hand(r.Context(), m) {
		http.Error(w, "the servers have ended", http.StatusServiceUnavailable)
		return
	}
	streaming := false
	for {
		select {
		case got := <-own.messages:
			if got.IsResponse() && !streaming {
				writeMessage(w, got, statusOf(got))
				return
			}
			if !streaming {
				streaming = true
				w.Header().Set("Content-Type", "text/event-stream")
				w.Header().Set("X-Accel-Buffering", "no")
				w.WriteHeader(http.StatusOK)
			}
			if writeEvent(w, got) != nil {
				p.cancel(m.ID)
				return
			}
			if got.IsResponse() {
				return
			}
		case <-own.gone:
			p.cancel(m.ID)
			return
		case <-p.ctx.Done():
			if !streaming {
				http.Error(w, "the servers have ended", http.StatusServiceUnavailable)
			}
			return
		}
	}
}

// cancel tells the gateway that the client has left.
func (p *pool) cancel(name jsontext.Value) {
	m, err := message.Notification("notifications/cancelled", map[string]any{"requestId": name, "reason": "the client has left"})
	if err == nil {
		m.Stateless = true
		_ = p.hand(context.Background(), m)
	}
}

// writeEvent writes a message as a server-sent event.
func writeEvent(w http.ResponseWriter, m message.Message) error {
	line, err := m.AppendLine([]byte("event: message\ndata: "))
	if err != nil {
		return err
	}
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(time.Now().Add(writeTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := fmt.Fprintf(w, "%s\n", line); err != nil {
		return err
	}
	if err := control.Flush(); err != nil {
		return err
	}
	// The deadline would apply to the connection's next answer too.
	if err := control.SetWriteDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
