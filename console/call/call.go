// Package call serves the calls of people and of their programs: it finds the caller, checks the
// permission, admits the request and sends the answer. The packages of the console have handlers.
//
// Invariants:
//
//   - The caller is known before the body is read: by a session, or by a token where tokens have the right.
//   - A route names a permission of package account, and the role of the caller must have it.
//   - A call acts on the organization of its session and on no other.
//   - A call whose permission needs an active organization is refused in an inactive one.
//   - A request that a browser makes for another site changes nothing.
//   - A request beyond the limit is refused before its body is read.
//   - An answer that is streamed ends with its connection if it fails after its first byte. Its writer
//     waits for a slow reader for a bounded time.
package call

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/consoletoken"
)

// Sessions finds the session of a token; fault.Unauthorized when there is none, or when it
// has ended. The session is at most one second old.
type Sessions interface {
	Session(ctx context.Context, token string) (*account.Session, error)
}

// Tokens finds for whom a console token acts (package consoletoken).
type Tokens interface {
	Authenticate(ctx context.Context, token string) (*account.Session, consoletoken.ID, error)
}

// Organizations tells what an organization allows (package org).
type Organizations interface {
	Active(ctx context.Context, t id.Tenant) (bool, error)
	SignIn(ctx context.Context, t id.Tenant) (string, error)
}

// Options configure New. All but Address are required.
type Options struct {
	Edge          *edge.Edge
	Sessions      Sessions
	Tokens        Tokens
	Organizations Organizations
	PublicURL     string // pages of its origin may call, also through a proxy that changes Host
	Control       *admission.Control

	// Address returns the network address of a client, which is kept beside the events of its calls.
	// Default: that of the other end of the connection.
	Address func(*http.Request) netip.Addr

	// Calls under way, and long polls that wait, in all and of one organization.
	MaxInFlight, MaxInFlightOrganization int
	MaxPolls, MaxPollsOrganization       int
}

// Bounds of streamed answers, in all and of one organization.
const (
	maxStreams             = 16
	maxStreamsOrganization = 4
)

// retryAfter is when to retry a poll for which there was no slot.
const retryAfter = 5 * time.Second

// Surface serves tables of routes. It keeps nothing of a call.
type Surface struct {
	Options
	crossOrigin *http.CrossOriginProtection
	cookie      string // name of the one with the session's token

	limit   *admission.Limit
	polls   *admission.Limit // of requests that wait
	streams *admission.Downloads
}

// New returns a surface.
func New(o Options) (*Surface, error) {
	if o.Address == nil {
		o.Address = peerAddress
	}
	s := &Surface{
		Options: o, crossOrigin: http.NewCrossOriginProtection(), cookie: account.CookieName(o.PublicURL),
		limit: admission.NewLimit(o.MaxInFlight, o.MaxInFlightOrganization),
		polls: admission.NewSharedLimit(o.MaxPolls, o.MaxPollsOrganization,
			"Too many polls wait; ask again later, or without wait", retryAfter),
		streams: admission.NewDownloads(maxStreams, maxStreamsOrganization),
	}
	u, err := url.Parse(o.PublicURL)
	if err == nil {
		err = s.crossOrigin.AddTrustedOrigin(u.Scheme + "://" + strings.ToLower(u.Host))
	}
	if err != nil {
		return nil, fmt.Errorf("console: public URL: %w", err)
	}
	return s, nil
}

// peerAddress returns the address at the other end of the connection.
func peerAddress(r *http.Request) netip.Addr {
	p, _ := netip.ParseAddrPort(r.RemoteAddr)
	return p.Addr()
}

// Handler answers the call of a person with the permission for it.
type Handler func(r *Request) (Answer, error)

// Table is the routes of people.
type Table = edge.Table[Handler]

// Permit returns the permission of a call of a member: by session, or by token where tokens may have the right.
func Permit(p account.Permission) edge.Permission {
	needed := edge.Permission{Credential: edge.Session, Right: string(p)}
	if p.ForTokens() {
		needed.Or = edge.ConsoleToken
	}
	return needed
}

// Mount adds the routes of a table to r.
func (s *Surface) Mount(r *edge.Router, table Table) {
	edge.Mount(r, edge.Surface[Handler]{Edge: s.Edge, Serve: s.serveRoute, Wait: edge.LongestWait}, table)
}

// WhileActive refuses a call, before its body is looked at, in an organization that
// the operator has made inactive.
func (s *Surface) WhileActive(h Handler) Handler {
	return func(r *Request) (Answer, error) {
		active, err := s.Organizations.Active(r.Context(), r.Who.Tenant)
		if err != nil {
			return Answer{}, err
		}
		if !active {
			return Answer{}, fault.New(fault.Forbidden,
				"The organization is inactive: its console is read-only, but for revoking keys")
		}
		return h(r)
	}
}

// serveRoute takes the requests of a route through the load control.
func (s *Surface) serveRoute(route *edge.Route[Handler]) edge.Handler {
	right, handle, usual := account.Permission(route.Permission.Right), route.Handler, s.classOf(route)
	polls := &admission.Class{Control: s.Control, Limit: s.polls, Waits: true}
	if right.NeedsActive() {
		handle = s.WhileActive(handle)
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		class := usual
		if wait := edge.LongestWait(r); wait > 0 && route.Mode == edge.LongPoll {
			class = polls
			edge.ExtendDeadlines(w, wait)
		}
		return class.Serve(r, &exchange{Request: Request{Request: r, body: route.Body}, surface: s, right: right,
			handle: handle, w: w})
	}
}

// classOf returns how the requests of a route are admitted.
func (s *Surface) classOf(route *edge.Route[Handler]) *admission.Class {
	class := &admission.Class{Control: s.Control, Limit: s.limit, MaxBody: route.Body.Max, Yields: true}
	if route.Method == http.MethodGet {
		class.Queue = s.Control.Reads
	}
	return class
}
