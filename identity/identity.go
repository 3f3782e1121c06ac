// Package identity is the HTTP API of people and of the operator: it signs people in, manages their accounts, the
// members and invitations of their organization, and answers the operator's calls, which package platform implements.
//
// Callers need not know how a browser is recognized, which cookies carry a challenge or a pending link, how attempts
// are limited by network, or which permission a route requires.
//
// Invariants:
//
//   - A platform call without the secret is refused before its body is read. Wrong secrets are limited by network,
//     so that they never keep other networks out.
//   - A refused sign-in has the same answer for every reason, and a forgotten password the same answer for every
//     address.
//   - A session reads and changes only the members and invitations of its own organization. The route names a
//     permission of package account; any other organization is not found.
//   - If an account has a passkey or recovery codes, its password alone does not sign in. The cookie of a sign-in
//     that still needs its second factor is not a session on any route.
//   - If an organization requires a method of signing in, sessions opened by another method can neither act in it
//     nor enter it on request.
//   - An offer alone makes nobody a member: an offered membership of a known account begins when that account signs
//     in to the organization.
//   - A secret appears only in the answer that shows it once, never in a log line.
//   - The session cookie is HttpOnly and SameSite=Lax, and Secure if the service is reached by https. A browser's
//     request from another origin neither signs in nor out.
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
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/identity/platform"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/oidc"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/ratelimit"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/telemetry"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/factor"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

// SecretHeader is the header of a request with the platform secret.
const SecretHeader = "X-Platform-Secret"

// maxBody is the largest request body in bytes.
const maxBody = 64 << 10

// Options configure New. All but OpenID, Browsers, Address, Nodes, Metrics and Now are required.
type Options struct {
	Edge        *edge.Edge
	Accounts    *account.Accounts
	Factors     *factor.Factors
	Members     *member.Members
	Orgs        *org.Orgs
	Provisioner *provision.Provisioner
	Setup       *provision.Setup
	Operator    *platform.Calls // the calls that require the platform secret
	Mail        Mail
	OpenID      *oidc.Party // nil: no sign-in providers
	Browsers    seal.Sealer // seals the cookies of known browsers and of pending links; nil: neither is used

	Signup         bool   // people with an account may create organizations
	PlatformSecret string // must not be empty
	PublicURL      string // if it is an https URL, the cookies are Secure

	// Address returns the client address by which attempts to sign in and wrong platform secrets are counted. Default:
	// the peer of the connection. Behind a proxy, use AddressFrom.
	Address func(*http.Request) netip.Addr

	// Nodes returns the number of nodes of the service, which share the limits on attempts. Default: 1.
	Nodes func() int

	Metrics prometheus.Registerer // default: none

	// Now returns the current time; default: time.Now.
	Now func() time.Time
}

// Server serves the API. Its only state between requests is the attempts of each network and a lock for each person
// who is creating an organization.
type Server struct {
	Options
	secret   [sha256.Size]byte // hash of the platform secret
	base     string            // path of the public URL, which precedes every path of the service
	secure   bool
	cookie   string // name of the session cookie
	origin   *http.CrossOriginProtection
	founding syncs.KeyLocks[account.ID] // serializes the creation of organizations by one person
	logins   loginCounters

	secretAttempts *secretAttempts
	flowAttempts   *flowAttempts // sign-ins at providers and passkeys
	tokenAttempts  *flowAttempts // tokens of invitations
	attemptLog     *slog.Logger  // drops repeated lines
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
		base:   strings.TrimRight(u.EscapedPath(), "/"),
		cookie: account.CookieName(o.PublicURL), origin: http.NewCrossOriginProtection()}
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
	s.flowAttempts, s.tokenAttempts = newFlowAttempts(o.Nodes), newFlowAttempts(o.Nodes)
	s.secretAttempts, s.attemptLog = newSecretAttempts(s.Now, o.Nodes, s.Metrics), telemetry.WithoutRepeats(s.Edge.Logger)
	return s, nil
}

// sameOrigin is the right of every caller except a browser that acts for a page of another origin.
const sameOrigin = "same origin"

// handler answers a request whose caller has the permission of its route.
type handler func(w http.ResponseWriter, r *request) error

// request is a request with its caller and the limits on its body. If the route requires a session, it was found.
type request struct {
	*http.Request
	caller *Caller
	body   edge.Body
}

// Routes adds all routes to r.
func (s *Server) Routes(r *edge.Router) { s.mountTable(r, s.listRoutes()) }

// PeopleRoutes adds all routes except the platform's to r. Browsers use them on the listener of the public URL.
func (s *Server) PeopleRoutes(r *edge.Router) {
	s.mountTable(r, slices.DeleteFunc(s.listRoutes(), func(route edge.Route[handler]) bool {
		return route.Permission.Credential == edge.PlatformSecret
	}))
}

func (s *Server) mountTable(r *edge.Router, table edge.Table[handler]) {
	edge.Mount(r, edge.Surface[handler]{Edge: s.Edge, Serve: s.serveRoute}, table)
}

func (s *Server) listRoutes() edge.Table[handler] {
	secret := edge.Permission{Credential: edge.PlatformSecret}
	page, session := edge.Permission{Right: sameOrigin}, edge.Permission{Credential: edge.Session}
	person := edge.Permission{Credential: edge.Session, Right: sameOrigin}
	none, some := edge.Body{}, edge.JSONBody(maxBody)
	var table edge.Table[handler]
	for _, call := range s.Operator.List() {
		body := none
		if call.HasBody {
			body = some
		}
		table.Add(call.Method, "/v1/id/platform"+call.Path, secret, body, s.handleOperator(call)).
			Takes(call.Query...)
	}
	table.Add("POST", "/v1/id/platform/accounts/password", secret, some, s.setPassword)

	table.Add("POST", "/v1/id/setup", page, some, s.setUp)
	table.Add("POST", "/v1/id/orgs", person, some, s.foundOrganization)
	table.Add("POST", "/v1/id/auth/login", page, some, s.signIn)
	table.Add("POST", "/v1/id/auth/logout", page, none, s.signOut)
	table.Add("GET", "/v1/id/auth/me", session, none, s.answerSession)
	table.Add("POST", "/v1/id/auth/forgot-password", page, some, s.forgotPassword)
	table.Add("POST", "/v1/id/auth/reset-password", page, some, s.resetPassword)
	table.Add("POST", "/v1/id/auth/step-up", person, some, s.stepUp)

	table.Add("PATCH", "/v1/id/account", person, some, s.patchAccount)
	table.Add("POST", "/v1/id/account/password", person, some, s.changePassword)
	table.Add("POST", "/v1/id/account/email", person, some, s.beginEmailChange)
	table.Add("POST", "/v1/id/account/email/confirm", person, some, s.confirmEmail)
	table.Add("GET", "/v1/id/account/sessions", session, none, s.listSessions)
	table.Add("DELETE", "/v1/id/account/sessions", person, none, s.endOtherSessions)
	table.Add("DELETE", "/v1/id/account/sessions/{session}", person, none, s.endSession)
	table.Add("GET", "/v1/id/account/login-events", session, none, s.listLoginEvents)
	open := edge.Permission{}
	table.Add("GET", openIDPath, open, none, s.answerProviders)
	table.Add("GET", openIDPath+"/{provider}/start", open, none, s.startOpenID).Takes("return", "fresh")
	table.Add("GET", openIDPath+"/{provider}/callback", open, none, s.finishOpenID).
		TakesAnyQuery() // RFC 6749, 4.1.2: the client ignores unknown response parameters
	s.addMemberRoutes(&table)
	s.addPasskeyRoutes(&table)
	return table
}

// handleOperator returns the handler of a call of the operator.
func (s *Server) handleOperator(call platform.Call) handler {
	named := strings.Contains(call.Path, "{organization}")
	return func(w http.ResponseWriter, r *request) error {
		if named {
			if err := s.CheckOperated(r.Context(), r.caller, chi.URLParam(r.Request, "organization")); err != nil {
				return err
			}
		}
		return call.Handle(w, r.Request, r.body)
	}
}

// serveRoute checks the permission of a route before its handler sees the request.
func (s *Server) serveRoute(route *edge.Route[handler]) edge.Handler {
	needed, right := route.Permission, account.Permission(route.Permission.Right)
	return func(w http.ResponseWriter, r *http.Request) error {
		c := s.NewCaller(r, func(k *http.Cookie) { http.SetCookie(w, k) })
		serve := s.ServeChange
		if needed.Credential == edge.PlatformSecret {
			if err := s.CheckSecret(r, r.Header.Get(SecretHeader)); err != nil {
				return err
			}
			serve = s.ServeOperator
		}
		if needed.Right != "" { // sameOrigin, or that of a member
			if err := s.CheckOrigin(r); err != nil {
				return err
			}
		}
		if needed.Credential == edge.Session {
			if _, err := s.FindSession(r.Context(), c); err != nil {
				return err
			}
			if right != "" && right != sameOrigin {
				if err := s.admitMember(r, c, right); err != nil {
					return err
				}
			}
		}
		var kept func() []byte
		err := serve(r.Context(), c, func(ctx context.Context) error {
			q := r.WithContext(ctx)
			kept = s.Edge.KeepBody(q)
			return route.Handler(w, &request{q, c, route.Body})
		})
		if lost, ok := errors.AsType[*admission.Elsewhere](err); ok && lost.Body == nil {
			lost.Body = kept()
		}
		return err
	}
}

// CheckSecret returns an error unless secret is the platform secret. It limits wrong secrets by network.
func (s *Server) CheckSecret(r *http.Request, secret string) error {
	given := sha256.Sum256([]byte(secret))
	from := s.Address(r)
	err := s.secretAttempts.checkAttempt(from, subtle.ConstantTimeCompare(given[:], s.secret[:]) == 1)
	if err != nil {
		s.attemptLog.Warn("platform secret refused", "network", ratelimit.NetworkOf(from), "limited",
			fault.Is(err, fault.RateLimited))
	}
	return err
}

// errRequired is the answer to a request without a required member or header.
func errRequired(name string) error { return fault.New(fault.Invalid, name+" is required") }

// decodeBody reads the JSON body of a request into v.
func (r *request) decodeBody(v any) error {
	body, err := edge.ReadBody(r.Request, r.body)
	if err != nil {
		return err
	}
	return edge.DecodeStrict(body, v)
}
