// Package granthttp checks grants where the action happens: in front of an HTTP server. A request for
// a declared tool reaches the server only with a grant for exactly this action, and only once.
//
// It hides the headers, the clock, the comparison of a request with the approved action, and the
// memory of used grants. The contract is docs/guides/grants-at-the-tool.md, which the clients for Python and
// TypeScript implement too.
//
// Invariants:
//
//   - No network and no file. The keys of the organization's grants are pinned.
//   - Fail closed: a request that is neither declared nor open is refused, and so is a grant that may
//     have been used before this process started.
//   - Bounded: at most MaxUsed grants are remembered, and a body of at most MaxBody bytes is read for
//     each grant that is valid and unused.
//
// The package is stable in the sense of README, section Stability.
package granthttp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// Headers of a request.
const (
	GrantHeader = "Agentledger-Grant" // base64 of the signed note
	CallHeader  = "Agentledger-Call"  // base64 of the approved payload, if it has a guard's members
	// IntentHeader asks for a receipt of a request without a grant: organization, agent and event_id
	// of its intent, with a space between them. CallHeader then has the intent's payload.
	IntentHeader = "Agentledger-Intent"
)

// Bounds of a request and of a configuration.
const (
	MaxBody   = 1 << 20  // bytes of a request's body
	maxGrant  = 4096     // characters of GrantHeader
	maxCall   = 64 << 10 // characters of CallHeader
	maxTarget = 8 << 10  // characters of a request target
	maxRoutes = 1000     // routes and open routes, each
	maxKeys   = 16
)

// Leeway is by how much this machine's clock may be behind the service's, in milliseconds.
const Leeway id.Instant = 2000

// Config declares the tools of a server. Its JSON form is the configuration file of aps grant serve.
type Config struct {
	// Keys are the verifier keys of the grants, as transparency/keys lists them with the use grant. There
	// may be none if all Routes are optional.
	Keys []string `json:"keys"`
	// Routes are the requests that need a grant. The first that matches counts.
	Routes []Route `json:"routes"`
	// Open are the requests that need no grant: "<METHOD> *" for a method without tools, and
	// "<METHOD> <path>" for a path without parameters.
	Open []string `json:"open,omitzero"`
	// OnBehalfOf returns on whose behalf the request is made, according to the server itself: the user
	// of its access token, for example. A grant for an action with a subject is accepted only for this
	// subject with these actors. If OnBehalfOf is nil or returns nil, only grants without a subject are.
	// A request for which it returns an error is refused.
	OnBehalfOf func(r *http.Request) (*event.OnBehalfOf, error) `json:"-"`
	// Receipts is the server's own key, by which Wrap signs a receipt of each action that it passes
	// on with a grant, or on an optional route with IntentHeader. If nil, there are no receipts.
	Receipts *tlog.SignerKey `json:"-"`
}

// Route declares the tool of requests. Exactly one of Tool and Host is set.
type Route struct {
	// Route is "<METHOD> <path>", in which a segment {name} is a parameter. The path * is each path;
	// it is only for a Route with Host or Describe.
	Route string `json:"route"`
	// Tool is the tool_name that approvers see. The arguments are the members of the JSON body and the
	// parameters of the path, which are strings. A query is refused.
	Tool id.Tool `json:"tool,omitzero"`
	// Host makes the request itself the action, as guard.DescribeRequest describes it: the tool is
	// http.<method>, and the payload has method, host, path, query and the SHA-256 of the body. Host is
	// the name under which agents address this server. The Host header is not read.
	Host string `json:"host,omitzero"`
	// Optional passes requests without a grant on too. A grant that is sent is checked all the same.
	Optional bool `json:"optional,omitzero"`
	// Describe returns the arguments of Tool, which must encode as a JSON object. It replaces the
	// description above, and so it must cover everything in the request that the action depends on.
	Describe func(r *http.Request, body []byte) (arguments any, err error) `json:"-"`
}

// SubjectHeader returns a function for Config.OnBehalfOf that reads a header, whose value is JSON in the form of on_behalf_of. A proxy
// that knows the user must set or remove this header in each request: whoever else can send it chooses whose grants are accepted.
func SubjectHeader(name string) func(*http.Request) (*event.OnBehalfOf, error) {
	return func(r *http.Request) (*event.OnBehalfOf, error) {
		text := headerValue(r.Header, name)
		if text == "" {
			return nil, nil
		}
		return event.ParseOnBehalfOf([]byte(text))
	}
}

// ParseConfig parses the JSON form of a configuration. Unknown members are errors.
func ParseConfig(text []byte) (Config, error) {
	var c Config
	if err := json.Unmarshal(text, &c, json.RejectUnknownMembers(true)); err != nil {
		return Config{}, fmt.Errorf("grants: configuration: %w", err)
	}
	return c, nil
}

// Checker checks the requests of one server. It is safe for concurrent use.
type Checker struct {
	keys   []tlog.VerifierKey
	routes []route
	open   []route
	start  id.Instant // grants that are not younger may have been used by an earlier process
	now    func() id.Instant
	used   *used

	subject  func(r *http.Request) (*event.OnBehalfOf, error)
	receipts *tlog.SignerKey
}

// New returns a checker. Errors are about the configuration.
func New(c Config) (*Checker, error) {
	now := func() id.Instant { return id.InstantOf(time.Now()) }
	return newChecker(c, now)
}

func newChecker(c Config, now func() id.Instant) (*Checker, error) {
	checker := &Checker{now: now, start: now(), used: newUsed(), subject: c.OnBehalfOf, receipts: c.Receipts}
	needed := 0
	for i := range c.Routes {
		if !c.Routes[i].Optional {
			needed = 1
		}
	}
	if len(c.Keys) < needed || len(c.Keys) > maxKeys {
		return nil, fmt.Errorf("grants: keys: 1 to %d are needed", maxKeys)
	}
	for _, text := range c.Keys {
		key, err := tlog.ParseVerifierKey(text)
		if err != nil {
			return nil, fmt.Errorf("grants: keys: %w", err)
		}
		origin, ok := strings.CutSuffix(key.Name(), "/grant")
		if _, err := id.Origin(origin).Organization(); !ok || err != nil {
			return nil, errors.New("grants: keys: not a key of an organization's grants")
		}
		checker.keys = append(checker.keys, key)
	}
	var err error
	if checker.routes, checker.open, err = compileRoutes(c); err != nil {
		return nil, fmt.Errorf("grants: %w", err)
	}
	return checker, nil
}

// Wrap returns a handler that passes a request on to next if its grant permits it or if it is open,
// and answers it with a refusal otherwise. The body of a request with a grant can be read again.
// FromContext returns the grant.
func (c *Checker) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		permitted, receipt, err := c.check(r, true)
		if err != nil {
			err.write(w)
			return
		}
		if receipt == nil || c.receipts == nil {
			next.ServeHTTP(w, permitted)
			return
		}
		signing := &receiptWriter{ResponseWriter: w, sign: func(status int) ([]byte, error) { return c.signReceipt(*receipt, status) }}
		next.ServeHTTP(signing, permitted)
		if !signing.signed {
			signing.WriteHeader(http.StatusOK)
		}
	})
}

type contextKey struct{}

// FromContext returns the grant that a request runs under. It reports false for a request without one,
// which is open or optional.
func FromContext(ctx context.Context) (grant.Grant, bool) {
	g, ok := ctx.Value(contextKey{}).(grant.Grant)
	return g, ok
}

// check returns the request as the server may handle it and its receipt without status and time, or the refusal. The receipt is
// nil if the request states no action. whole reports whether r has the whole body of the request.
func (c *Checker) check(r *http.Request, whole bool) (*http.Request, *grant.Receipt, *refusal) {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	if !strings.HasPrefix(path, "/") || len(r.RequestURI) > maxTarget {
		return nil, nil, refuse(400, "bad_request", "The request target must be a path")
	}
	route, parameters := match(c.routes, r.Method, path)
	if route == nil {
		if open, _ := match(c.open, r.Method, path); open != nil {
			return r, nil, nil
		}
		return nil, nil, refuse(403, "not_declared", "No tool is declared for this method and path")
	}
	q := request{route, path, query, parameters}
	bare := route.Optional && headerValue(r.Header, GrantHeader) == ""
	if bare && (c.receipts == nil || headerValue(r.Header, IntentHeader) == "") {
		return r, nil, nil
	}
	if !whole {
		return nil, nil, refuse(403, "no_body", "The proxy did not send the whole body")
	}
	if bare {
		return c.checkIntent(r, q)
	}
	g, err := c.openGrant(r.Header)
	if err != nil {
		return nil, nil, err
	}
	if err := c.used.claim(g, c.now()); err != nil {
		return nil, nil, err
	}
	receipt := &grant.Receipt{Agent: g.Agent, Approval: g.Approval, Nonce: g.Nonce}
	permitted, err := c.compareGrant(r, q, g, receipt)
	if err != nil {
		c.used.release(g.Nonce)
		return nil, nil, err
	}
	return permitted.WithContext(context.WithValue(r.Context(), contextKey{}, g)), receipt, nil
}

// compareGrant returns the request with its body if the grant is for its action and subject. It adds the action to the receipt.
func (c *Checker) compareGrant(r *http.Request, q request, g grant.Grant, receipt *grant.Receipt) (*http.Request, *refusal) {
	other := refuse(403, "other_action", "The grant is for another action")
	var err error
	if receipt.Organization, err = g.Origin.Organization(); err != nil {
		return nil, other
	}
	permitted, action, refused := readAction(r, q, receipt, other)
	if refused != nil {
		return nil, refused
	}
	digest := receipt.ActionDigest
	if c.subject != nil {
		subject, err := c.subject(r)
		if err != nil {
			return nil, other
		}
		action.OnBehalfOf = subject.Canonical()
		digest = action.Digest()
	}
	if digest != g.ActionDigest {
		return nil, other
	}
	return permitted, nil
}

// checkIntent is check for a request with an intent in place of a grant. Organization, agent and intent are what the request states.
func (c *Checker) checkIntent(r *http.Request, q request) (*http.Request, *grant.Receipt, *refusal) {
	receipt := new(grant.Receipt)
	if !readIntent(headerValue(r.Header, IntentHeader), receipt) {
		return nil, nil, refuse(400, "bad_request", "Agentledger-Intent must be an organization, an agent and an event")
	}
	permitted, _, refused := readAction(r, q, receipt, refuse(403, "other_action", "The intent is for another action"))
	return permitted, receipt, refused
}

// openGrant returns the request's grant, if a pinned key signed it and it is valid now.
func (c *Checker) openGrant(h http.Header) (grant.Grant, *refusal) {
	text := headerValue(h, GrantHeader)
	if text == "" {
		return grant.Grant{}, refuse(403, "grant_required", "This action needs a grant")
	}
	bad := refuse(403, "bad_grant", "The grant is malformed or is not signed by a known key")
	note, err := decode(text, maxGrant)
	if err != nil {
		return grant.Grant{}, bad
	}
	for _, key := range c.keys {
		g, err := grant.Open(note, key)
		if err != nil {
			continue
		}
		now := c.now()
		switch {
		case now >= g.NotAfter:
			return g, refuse(403, "expired", "The grant has expired")
		case now+Leeway < g.NotBefore:
			return g, refuse(403, "not_yet", "The grant is not valid yet: compare the clocks")
		case g.NotBefore <= c.start+Leeway:
			return g, refuse(403, "before_start", "The grant is older than this process, which can't know whether it was used")
		}
		return g, nil
	}
	return grant.Grant{}, bad
}

// headerValue returns all values of a header as one, so that a second one is never ignored.
func headerValue(h http.Header, name string) string { return strings.Join(h.Values(name), ", ") }

// decode decodes base64 of at most most characters in its one spelling.
func decode(text string, most int) ([]byte, error) {
	if len(text) > most || strings.ContainsAny(text, "\r\n") {
		return nil, errors.New("base64: too long or of several lines")
	}
	return base64.StdEncoding.Strict().DecodeString(text)
}

// refusal is the answer to a request that may not be made. Its text is the same in all languages.
type refusal struct {
	status  int
	Message string `json:"error"`
	Code    string `json:"code"`
	retry   int    // seconds, 0 for never
}

func refuse(status int, code, message string) *refusal {
	return &refusal{status: status, Code: code, Message: message}
}

func (r *refusal) write(w http.ResponseWriter) {
	body, err := json.Marshal(r)
	if err != nil {
		panic(err) // two strings
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if r.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(r.retry))
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(body)
}
