package ingest

import (
	"net/http"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

// serve lets callers in while there is room, before anything of the body is looked
// at, and takes the speed out of floods of what is refused.
func (s *Server) serve(route *edge.Route[handler]) edge.Handler {
	admit := s.admit
	if route.Mode == edge.LongPoll {
		admit = s.admitPoll
	}
	scope := wantScope(route.Permission.Right)
	return func(w http.ResponseWriter, r *http.Request) error {
		c, err := s.enter(r, scope)
		if err == nil {
			err = admit(w, r, c, route)
		}
		if err != nil {
			s.brake.Hold(r.Context(), c.tenant())
		}
		return err
	}
}

func (s *Server) admit(w http.ResponseWriter, r *http.Request, c caller, route *edge.Route[handler]) error {
	weight, gate := weightOf(r.ContentLength), s.gateOf(route)
	if err := gate.Enter(c.Tenant, weight); err != nil {
		return err
	}
	defer gate.Leave(c.Tenant, weight)
	body, err := s.read(r, c, route.Body, weight)
	if err != nil {
		return err
	}
	defer s.lobby.Leave(c.party(), weight)
	return route.Handler(w, r, c, body)
}

// gateOf returns what bounds the requests of a route.
func (s *Server) gateOf(route *edge.Route[handler]) *admission.Gate {
	if route.Permission.Right == org.ScopeEvaluate.String() {
		return s.asked
	}
	return s.gate
}

// senderTime is for how long a request that waits for its sender has a place at work.
const senderTime = 20 * time.Millisecond

// read returns the body; without an error the request is at work then. A heavy body
// is read at work, since that takes a processor too, but a sender that is slow
// keeps no place.
func (s *Server) read(r *http.Request, c caller, bounds edge.Body, weight int) ([]byte, error) {
	if weight == 1 {
		body, err := readBody(r, bounds)
		if err == nil {
			err = s.lobby.Enter(r.Context(), c.party(), weight)
		}
		return body, err
	}
	if err := s.lobby.Enter(r.Context(), c.party(), weight); err != nil {
		return nil, err
	}
	loan := s.lobby.Lend(c.party(), weight, senderTime)
	body, err := readBody(r, bounds)
	kept := loan.Keep()
	switch {
	case err != nil && kept:
		s.lobby.Leave(c.party(), weight)
	case err == nil && !kept:
		err = s.lobby.Enter(r.Context(), c.party(), weight)
	}
	return body, err
}

// readBody reads the body of a route that has one.
func readBody(r *http.Request, bounds edge.Body) ([]byte, error) {
	if bounds.Max == 0 {
		return nil, nil
	}
	return edge.ReadBody(r, bounds)
}

// weightUnit is how many bytes of a body count as one request under way.
const weightUnit = 64 << 10

// weightOf returns what a request weighs that announces a body of n bytes. One that
// announces none of a length weighs as much as the longest.
func weightOf(n int64) int {
	if n < 0 || n > maxBatchBytes {
		n = maxBatchBytes
	}
	return 1 + int(n/weightUnit)
}

// party returns whose share of the work the request takes.
func (c caller) party() admission.Party { return admission.Party{Tenant: c.Tenant} }

// tenant returns whose request it is, id.Service when that is not known.
func (c caller) tenant() id.Tenant {
	if c.Caller == nil {
		return id.Service
	}
	return c.Tenant
}
