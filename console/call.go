package console

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
	"github.com/agentledger/agentledger/internal/tenant/apitoken"
)

// Sessions finds the session of a token. It returns fault.Unauthorized if there is none or it has ended. The session is
// at most one second old.
type Sessions interface {
	Session(ctx context.Context, token string) (*account.Session, error)
}

// tokenFinder finds the caller of a console token (package apitoken).
type tokenFinder interface {
	Authenticate(ctx context.Context, token string) (*account.Session, apitoken.ID, error)
}

// organizations reports what an organization allows (package org).
type organizations interface {
	Active(ctx context.Context, t id.Tenant) (bool, error)
	SignIn(ctx context.Context, t id.Tenant) (string, error)
}

// surfaceOptions configure newSurface. All but Address are required.
type surfaceOptions struct {
	Edge          *edge.Edge
	Sessions      Sessions
	Tokens        tokenFinder
	Organizations organizations
	// Represents returns the member in whose place a member votes now, or "" (package member).
	Represents func(ctx context.Context, t id.Tenant, who account.ID) (account.ID, error)
	PublicURL  string // pages of its origin may call, even through a proxy that changes Host
	Control    *admission.Control

	// Address returns the network address of a client, which is stored with the events of its calls. If nil, it is the
	// address of the peer.
	Address func(*http.Request) netip.Addr

	// Maximum numbers of calls in flight, and of waiting long polls, in all and per organization.
	MaxInFlight, MaxInFlightOrganization int
	MaxPolls, MaxPollsOrganization       int
}

// Maximum numbers of streamed answers, in all and per organization.
const (
	maxStreams             = 16
	maxStreamsOrganization = 4
)

// retryAfter is when to retry a poll that got no slot.
const retryAfter = 5 * time.Second

// surface serves tables of routes. It keeps no state of a call.
type surface struct {
	surfaceOptions
	crossOrigin *http.CrossOriginProtection
	cookie      string // name of the session cookie

	limit   *admission.Limit
	polls   *admission.Limit // of waiting requests
	shared  *admission.Limit // of requests for shared views
	streams *admission.Downloads
	// downloads are the streamed answers to holders of links. They have slots of their own, so that outsiders leave members
	// theirs.
	downloads *admission.Downloads
}

// newSurface returns a surface.
func newSurface(o surfaceOptions) (*surface, error) {
	if o.Address == nil {
		o.Address = peerAddress
	}
	s := &surface{
		surfaceOptions: o, crossOrigin: http.NewCrossOriginProtection(), cookie: account.CookieName(o.PublicURL),
		limit: admission.NewLimit(o.MaxInFlight, o.MaxInFlightOrganization),
		polls: admission.NewSharedLimit(o.MaxPolls, o.MaxPollsOrganization,
			"Too many polls wait; ask again later, or without wait", retryAfter),
		shared:  admission.NewLimit(maxShared, maxSharedOrganization),
		streams: admission.NewDownloads(maxStreams, maxStreamsOrganization), downloads: admission.NewDownloads(maxSharedStreams, maxSharedStreamsOrganization),
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

// peerAddress returns the network address of the peer.
func peerAddress(r *http.Request) netip.Addr {
	p, _ := netip.ParseAddrPort(r.RemoteAddr)
	return p.Addr()
}

// handler answers the call of a caller who has the required permission.
type handler func(r *request) (answer, error)

// routes is a table of the console's routes.
type routes = edge.Table[handler]

// permit returns the permission of a member's call: by session, or by token if tokens may have the permission.
func permit(p account.Permission) edge.Permission {
	needed := edge.Permission{Credential: edge.Session, Right: string(p)}
	if p.ForTokens() {
		needed.Or = edge.ConsoleToken
	}
	return needed
}

// Mount adds the routes of a table to r.
func (s *surface) Mount(r *edge.Router, table routes) {
	edge.Mount(r, edge.Surface[handler]{Edge: s.Edge, Serve: s.serveRoute, Wait: edge.LongestWait}, table)
}

// whileActive refuses a call, before its body is read, if the operator has deactivated the organization.
func (s *surface) whileActive(h handler) handler {
	return func(r *request) (answer, error) {
		if err := s.checkActive(r.Context(), r.Who.Tenant); err != nil {
			return answer{}, err
		}
		return h(r)
	}
}

// checkActive refuses a change if the operator has deactivated the organization.
func (s *surface) checkActive(ctx context.Context, t id.Tenant) error {
	active, err := s.Organizations.Active(ctx, t)
	if err == nil && !active {
		err = fault.New(fault.Forbidden,
			"The organization is inactive: its console is read-only, except for revoking keys")
	}
	return err
}

// serveRoute admits the requests of a route through the load control.
func (s *surface) serveRoute(route *edge.Route[handler]) edge.Handler {
	right, handle, usual := account.Permission(route.Permission.Right), route.Handler, s.classFor(route)
	polls := &admission.Class{Control: s.Control, Limit: s.polls, Waits: true}
	if right.NeedsActive() {
		handle = s.whileActive(handle)
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		class := usual
		if wait := edge.LongestWait(r); wait > 0 && route.Mode == edge.LongPoll {
			class = polls
			edge.ExtendDeadlines(w, wait)
		}
		return class.Serve(r, &exchange{request: request{Request: r, body: route.Body}, surface: s, right: right,
			handle: handle, w: w})
	}
}

// classFor returns how the requests of a route are admitted.
func (s *surface) classFor(route *edge.Route[handler]) *admission.Class {
	class := &admission.Class{Control: s.Control, Limit: s.limit, MaxBody: route.Body.Max, Yields: true}
	if route.Method == http.MethodGet {
		class.Queue = s.Control.Reads
	}
	return class
}
