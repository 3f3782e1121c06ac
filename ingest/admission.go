package ingest

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

// serveRoute passes the requests of a route through the load control.
func (s *Server) serveRoute(route *edge.Route[handler]) edge.Handler {
	scope, class := newWantedScope(route.Permission.Right), s.classFor(route)
	polls := *class
	polls.Limit = s.polls
	return func(w http.ResponseWriter, r *http.Request) error {
		class := class
		if class.Waits && edge.LongestWait(r) > 0 {
			class = &polls
		}
		return class.Serve(r, &call{server: s, route: route, scope: scope, w: w, r: r})
	}
}

// classFor returns how the requests of a route are admitted.
func (s *Server) classFor(route *edge.Route[handler]) *admission.Class {
	c := &admission.Class{
		Control: s.control, Limit: s.limit, Pacer: s.pacer, MaxBody: route.Body.Max, WeighBody: true,
		Waits: route.Mode == edge.LongPoll,
	}
	if route.Permission.Right == org.ScopeEvaluate.String() {
		c.Limit, c.Queue = s.evaluations, s.control.Decisions
	}
	return c
}

// call is one request.
type call struct {
	server *Server
	route  *edge.Route[handler]
	scope  wantedScope
	w      http.ResponseWriter
	r      *http.Request
	caller caller
}

// Identify implements admission.Call.
func (c *call) Identify() (t admission.Tenant, err error) {
	if c.caller, err = c.server.authenticate(c.r, c.scope); c.caller.Caller == nil {
		return t, err
	}
	return c.caller.share, c.server.edge.CheckLost(err, c.caller.Tenant, nil)
}

// Handle implements admission.Call.
func (c *call) Handle() (err error) {
	var body []byte
	if c.route.Body.Max > 0 {
		if body, err = edge.ReadBody(c.r, c.route.Body); err != nil {
			return err
		}
	}
	if c.route.Pattern != batchPath { // it counts its lines first
		err = c.server.checkVersion(c.w, c.r)
	}
	if err == nil {
		err = c.route.Handler(c.w, c.r, c.caller, body)
	}
	return c.server.edge.CheckLost(err, c.caller.Tenant, body)
}

// compute runs CPU-bound work when it is the turn of the caller's organization.
func (s *Server) compute(ctx context.Context, c caller, work func() error) error {
	if err := s.control.Processors.Acquire(ctx, c.share, 1); err != nil {
		return err
	}
	defer s.control.Processors.Release(c.share, 1)
	return work()
}
