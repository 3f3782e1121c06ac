// Package identity is the HTTP surface of the operator and of signing in: it
// makes and changes organizations for the holder of the platform secret, and opens
// and closes the sessions of accounts.
//
// Invariants:
//
//   - A platform call without the secret is answered before its body is read. Wrong
//     secrets are slowed down by network, so that they never keep other networks out.
//   - A refused sign-in has one answer for every reason.
//   - An offer alone makes no account a member: a membership that was offered
//     to a known account begins when that account signs in to the organization.
//   - Secrets are in the answer that shows them once and in no log line.
//   - The session cookie is HttpOnly and SameSite=Lax, and Secure where the
//     service is reached by https. A browser's request from another origin
//     neither signs in nor out.
package identity

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/ratelimit"
	"github.com/agentledger/agentledger/internal/telemetry"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
)

// CookieName is the name of the session cookie.
const CookieName = "agentledger_session"

// maxBody is how many bytes a request may have.
const maxBody = 64 << 10

// Provisioner makes organizations (package provision).
type Provisioner interface {
	CreateOrganization(ctx context.Context, r provision.Request) (*provision.Result, error)
}

// Organizations finds and changes organizations (package org).
type Organizations interface {
	ByID(ctx context.Context, organization id.Organization) (id.Tenant, error)
	Summary(ctx context.Context, t id.Tenant) (org.Summary, error)
	Change(ctx context.Context, t id.Tenant, principal string, p org.Patch) (*org.Settings, error)
}

// LogKeys changes the keys and the clock of organizations' logs (package org).
type LogKeys interface {
	BySlug(ctx context.Context, slug id.Slug) (id.Tenant, error)
	RotateLogKey(ctx context.Context, t id.Tenant, principal string) (log.LogKey, error)
	RetireLogKey(ctx context.Context, t id.Tenant, principal string) (log.LogKey, error)
	CorrectClock(ctx context.Context, t id.Tenant, principal, reason string) (org.Corrected, error)
}

// Clock is the clock of the service (package clock).
type Clock interface {
	Status() clock.Status
	Accept() clock.Status
}

// People checks passwords (package account).
type People interface {
	Authenticate(ctx context.Context, email, password string, from netip.Addr) (account.Account, error)
	Find(ctx context.Context, email string) (account.Account, error)
	SetPassword(ctx context.Context, email, password string, names ...string) error
}

// Members tells the organizations of an account, also those that were offered to it, and
// accepts an offer (package account).
type Members interface {
	Places(ctx context.Context, who account.ID) ([]account.Membership, error)
	Accept(ctx context.Context, t id.Tenant, who account.ID) (account.Membership, error)
}

// Sessions opens and closes sessions (package account).
type Sessions interface {
	Open(ctx context.Context, who account.Account, t id.Tenant) (string, *account.Session, error)
	Session(ctx context.Context, token string) (*account.Session, error)
	Close(ctx context.Context, token string) error
	SessionLifetime() time.Duration
}

// Options configure New. All but Address, Metrics and Now are required.
type Options struct {
	Edge           *edge.Edge
	Provisioner    Provisioner
	Organizations  Organizations
	LogKeys        LogKeys
	Clock          Clock
	Witnesses      Witnesses
	People         People
	Members        Members
	Sessions       Sessions
	PlatformSecret string // not empty
	PublicURL      string // with https the cookie is Secure

	// Address returns the address for which attempts to sign in and wrong platform
	// secrets are counted. Default: the peer of the connection. Behind a proxy: the
	// address that the proxy reports.
	Address func(*http.Request) netip.Addr

	Metrics prometheus.Registerer // default: none

	// Now tells the time by which wrong platform secrets are counted; default: time.Now.
	Now func() time.Time
}

// Server serves the surface. Between requests it keeps one thing: the networks that gave
// wrong platform secrets.
type Server struct {
	Options
	secret [sha256.Size]byte // hash of the platform secret
	secure bool
	origin *http.CrossOriginProtection
	logins loginCounters

	secretAttempts *secretAttempts
	attemptLog     *slog.Logger // without repetitions
}

// New returns a server.
func New(o Options) (*Server, error) {
	if o.PlatformSecret == "" {
		return nil, errors.New("identity: no platform secret")
	}
	u, err := url.Parse(o.PublicURL)
	if err != nil {
		return nil, fmt.Errorf("identity: public URL: %w", err)
	}
	s := &Server{Options: o, secret: sha256.Sum256([]byte(o.PlatformSecret)), secure: u.Scheme == "https",
		origin: http.NewCrossOriginProtection()}
	if err := s.origin.AddTrustedOrigin(u.Scheme + "://" + strings.ToLower(u.Host)); err != nil {
		return nil, fmt.Errorf("identity: public URL: %w", err)
	}
	if s.Address == nil {
		s.Address = peerAddress
	}
	if s.Metrics == nil {
		s.Metrics = prometheus.NewRegistry()
	}
	s.logins = newLoginCounters(s.Metrics)
	if s.Now == nil {
		s.Now = time.Now
	}
	s.secretAttempts, s.attemptLog = newSecretAttempts(s.Now, s.Metrics), telemetry.WithoutRepeats(s.Edge.Logger)
	return s, nil
}

// sameOrigin is the right of every caller but a browser that acts for a page of another
// origin.
const sameOrigin = "same origin"

// handler answers a request whose caller has the permission of its route.
type handler func(w http.ResponseWriter, r *request) error

// request is a request with the bounds of its body.
type request struct {
	*http.Request
	body edge.Body
}

// Routes adds the routes of the surface to r.
func (s *Server) Routes(r *edge.Router) {
	const organization = "/v1/id/platform/organizations/{organization}"
	platform := edge.Permission{Credential: edge.PlatformSecret}
	page, session := edge.Permission{Right: sameOrigin}, edge.Permission{Credential: edge.Session}
	none, some := edge.Body{}, edge.JSONBody(maxBody)
	var table edge.Table[handler]
	table.Add("POST", "/v1/id/platform/organizations", platform, some, s.createOrganization)
	table.Add("PATCH", organization, platform, some, s.changeOrganization)
	table.Add("POST", organization+"/log-keys", platform, none, s.rotateLogKey)
	table.Add("POST", organization+"/log-keys/retire", platform, none, s.retireLogKey)
	table.Add("POST", organization+"/witnesses/ask", platform, none, s.askWitnesses)
	table.Add("POST", organization+"/clock", platform, some, s.correctClock)
	table.Add("GET", "/v1/id/platform/clock", platform, none, s.answerClock)
	table.Add("POST", "/v1/id/platform/clock", platform, some, s.acceptClock)
	table.Add("POST", "/v1/id/platform/accounts/password", platform, some, s.setPassword)

	table.Add("POST", "/v1/id/auth/login", page, some, s.signIn)
	table.Add("POST", "/v1/id/auth/logout", page, none, s.signOut)
	table.Add("GET", "/v1/id/auth/me", session, none, s.answerSession)

	edge.Mount(r, edge.Surface[handler]{Edge: s.Edge, Serve: s.serveRoute}, table)
}

// serveRoute checks the permission of a route before its handler sees a request. The handler
// of a route for sessions finds the session itself.
func (s *Server) serveRoute(route *edge.Route[handler]) edge.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if route.Permission.Credential == edge.PlatformSecret {
			if err := s.checkSecret(r); err != nil {
				return err
			}
		}
		if route.Permission.Right == sameOrigin {
			if err := s.origin.Check(r); err != nil {
				return fault.Wrap(fault.Forbidden, "Request of another origin", err)
			}
		}
		return route.Handler(w, &request{r, route.Body})
	}
}

// checkSecret refuses a request without the platform secret.
func (s *Server) checkSecret(r *http.Request) error {
	given := sha256.Sum256([]byte(r.Header.Get("X-Platform-Secret")))
	from := s.Address(r)
	err := s.secretAttempts.checkAttempt(from, subtle.ConstantTimeCompare(given[:], s.secret[:]) == 1)
	if err != nil {
		s.attemptLog.Warn("platform secret refused", "network", ratelimit.NetworkOf(from), "limited",
			fault.Is(err, fault.RateLimited))
	}
	return err
}

// decodeBody reads the JSON body of a request into v.
func (r *request) decodeBody(v any) error {
	body, err := edge.ReadBody(r.Request, r.body)
	if err != nil {
		return err
	}
	return edge.DecodeStrict(body, v)
}
