// Package listen serves MCP clients by streamable HTTP: sessions of the revisions 2025-03-26 to 2025-11-25, and requests
// of 2026-07-28, which has none.
//
// Invariants:
//
//   - Each session has its own connection with the gateway. A message reaches the session that its request
//     names by 128 random bits, and no other.
//   - A request with an Origin that is not allowed is refused, and so is one for a host that is neither
//     allowed nor this machine. A web page can't reach the gateway by a name that it controls.
//   - A session belongs to the origin that has opened it. A page of another origin can't use it.
//   - Where tokens are set, a request without one is refused before its body is read. A session belongs to the caller
//     whose token has opened it.
//   - The headers of a request without a session repeat its body, or it is refused. Its messages reach its own client and
//     no other one of the same caller.
//   - Sessions, the bytes of a message and the messages that wait for a stream are bounded.
package listen

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentledger/agentledger/internal/mcp/gateway"
	"github.com/agentledger/agentledger/internal/mcp/message"
)

// Options configure a Handler. Serve is required; other zero fields have their defaults.
type Options struct {
	// Serve serves one session. origin is that of the web page that has opened it, "" for another client.
	Serve     func(ctx context.Context, caller gateway.Caller, origin string) error
	Token     string            // bearer token of clients, "" for none
	Callers   map[string]string // principals by their bearer token, in the place of Token
	Origins   []string          // allowed origins and hosts of web pages
	Principal string            // header with the principal, "" for none
	MaxBytes  int               // of a message; default message.DefaultMaxBytes
	Sessions  int               // at once; default 64
	Idle      time.Duration     // life of a session without a request; default 30 min
}

// Path is the path that clients call.
const Path = "/mcp"

// Handler is an http.Handler. It is made by New.
type Handler struct {
	Options
	ctx     context.Context
	serving sync.WaitGroup

	mu       sync.Mutex
	sessions map[string]*session
	pools    map[poolName]*pool
}

// New returns a handler whose sessions end with ctx.
func New(ctx context.Context, o Options) *Handler {
	if o.MaxBytes == 0 {
		o.MaxBytes = message.DefaultMaxBytes
	}
	if o.Sessions == 0 {
		o.Sessions = 64
	}
	if o.Idle == 0 {
		o.Idle = 30 * time.Minute
	}
	return &Handler{Options: o, ctx: ctx, sessions: map[string]*session{}, pools: map[poolName]*pool{}}
}

// Wait waits for the end of the sessions, which end with the context of New.
func (h *Handler) Wait() { h.serving.Wait() }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != Path {
		http.NotFound(w, r)
		return
	}
	if isOwnOrigin(r) {
		r.Header.Del("Origin") // it is no page, because the gateway serves none
	}
	if !h.allowsOrigin(r) {
		http.Error(w, "the origin or host is not allowed", http.StatusForbidden)
		return
	}
	if h.answerPage(w, r) {
		return
	}
	caller, ok := h.authenticate(r)
	if !ok {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "a bearer token is needed", http.StatusUnauthorized)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodPost {
		h.servePost(w, r, caller)
		return
	}
	s := h.findSession(w, r, caller)
	switch {
	case s == nil:
	case r.Method == http.MethodGet:
		s.serveStandalone(w, r)
	case r.Method == http.MethodDelete:
		s.end()
		w.WriteHeader(http.StatusNoContent)
	default:
		http.Error(w, "POST, GET or DELETE", http.StatusMethodNotAllowed)
	}
}

// isOwnOrigin reports whether the Origin of a request is the address of this machine that the request was sent to. No
// page of another origin can send it.
func isOwnOrigin(r *http.Request) bool {
	u, err := url.Parse(r.Header.Get("Origin"))
	if err != nil || u.Host == "" || u.Host != r.Host {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// allowsOrigin reports whether a request can't come from a foreign web page.
func (h *Handler) allowsOrigin(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && !slices.Contains(h.Origins, origin) {
		return false
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	ip := net.ParseIP(host)
	if host == "localhost" || ip != nil && (ip.IsLoopback() || h.Token != "" || len(h.Callers) > 0) {
		return true
	}
	return slices.ContainsFunc(h.Origins, func(origin string) bool {
		u, err := url.Parse(origin)
		return err == nil && u.Hostname() == host
	})
}

// authenticate returns the caller whose token a request has, "" for the common token. It compares digests, so that the
// time tells nothing about a token.
func (h *Handler) authenticate(r *http.Request) (caller string, ok bool) {
	if h.Token == "" && len(h.Callers) == 0 {
		return "", true
	}
	given, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	got := sha256.Sum256([]byte(given))
	same := func(token string) bool {
		want := sha256.Sum256([]byte(token))
		return token != "" && subtle.ConstantTimeCompare(want[:], got[:]) == 1
	}
	for token, name := range h.Callers {
		if same(token) {
			caller, ok = name, true
		}
	}
	return caller, found && (ok || same(h.Token))
}

func (h *Handler) servePost(w http.ResponseWriter, r *http.Request, caller string) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(h.MaxBytes)))
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		http.Error(w, "the message is too long", http.StatusRequestEntityTooLarge)
		return
	}
	m, parseErr := message.Parse(body)
	if unreadable, ok := errors.AsType[*message.CallError](parseErr); ok && err == nil {
		writeMessage(w, gateway.RefuseCall(unreadable.ID, unreadable.Err), http.StatusOK)
		return
	}
	if err != nil || parseErr != nil {
		http.Error(w, "the body is not one JSON-RPC message", http.StatusBadRequest)
		return
	}
	m.Caller = caller
	if h.Principal != "" {
		m.Principal = r.Header.Get(h.Principal)
	}
	if revision, ok := readStateless(r, m); ok {
		h.serveStateless(w, r, m, revision, caller)
		return
	}
	var s *session
	if m.Method == "initialize" && r.Header.Get(sessionHeader) == "" {
		if s = h.openSession(r.Header.Get("Origin"), caller); s == nil {
			http.Error(w, "too many sessions", http.StatusServiceUnavailable)
			return
		}
	} else if s = h.findSession(w, r, caller); s == nil {
		return
	}
	w.Header().Set(sessionHeader, s.name)
	if m.IsRequest() {
		s.serveRequest(w, r, m)
		return
	}
	if !s.hand(r.Context(), m) {
		http.Error(w, "the session is over", http.StatusNotFound)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

const sessionHeader = "Mcp-Session-Id"

// findSession answers a request without a session.
func (h *Handler) findSession(w http.ResponseWriter, r *http.Request, caller string) *session {
	name := r.Header.Get(sessionHeader)
	if name == "" {
		http.Error(w, sessionHeader+" is missing: send initialize first", http.StatusBadRequest)
		return nil
	}
	h.mu.Lock()
	s := h.sessions[name]
	h.mu.Unlock()
	if s == nil || s.owner != caller {
		http.Error(w, "no such session", http.StatusNotFound)
		return nil
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != s.origin {
		http.Error(w, "the session belongs to another origin", http.StatusForbidden)
		return nil
	}
	return s
}

// openSession begins a session, nil when there are too many.
func (h *Handler) openSession(origin, caller string) *session {
	var name [16]byte
	_, _ = rand.Read(name[:]) // never fails
	ctx, end := context.WithCancel(h.ctx)
	s := newSession(hex.EncodeToString(name[:]), caller, origin, newInbox(ctx, end))
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.sessions)+len(h.pools) >= h.Sessions || h.ctx.Err() != nil {
		end()
		return nil
	}
	h.sessions[s.name] = s
	h.serving.Go(func() {
		defer end()
		defer s.endIdle(h.Idle, s.inUse).Stop()
		_ = h.Serve(ctx, s, origin) // its errors are reported by the gateway
		h.mu.Lock()
		delete(h.sessions, s.name)
		h.mu.Unlock()
	})
	return s
}
