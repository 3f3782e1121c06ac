package ingest

import (
	"net/http"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

// route is what a route wants of a request.
type route struct {
	scope        org.Scope
	unauthorized string // what strangers are told
	media        string // type of the body
	maxBytes     int    // of the body
	answer       func(w http.ResponseWriter, r *http.Request, c caller, body []byte) error
}

// serve lets callers in while there is room, before anything of the body is looked
// at, and takes the speed out of floods of what is refused.
func (s *Server) serve(p route) http.Handler { return s.edge.Handle(s.handler(p)) }

func (s *Server) handler(p route) edge.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		c, err := s.enter(r, p.scope, p.unauthorized)
		if err == nil {
			err = s.admit(w, r, c, p)
		}
		if err != nil {
			s.brake.Hold(r.Context(), c.tenant())
		}
		return err
	}
}

func (s *Server) admit(w http.ResponseWriter, r *http.Request, c caller, p route) error {
	weight, gate := weightOf(r.ContentLength), s.gateOf(p)
	if err := gate.Enter(c.Tenant, weight); err != nil {
		return err
	}
	defer gate.Leave(c.Tenant, weight)
	body, err := s.read(r, c, p, weight)
	if err != nil {
		return err
	}
	defer s.lobby.Leave(c.party(), weight)
	return p.answer(w, r, c, body)
}

// gateOf returns what bounds the requests of a route.
func (s *Server) gateOf(p route) *admission.Gate {
	if p.scope == org.ScopeEvaluate {
		return s.asked
	}
	return s.gate
}

// senderTime is for how long a request that waits for its sender has a place at work.
const senderTime = 20 * time.Millisecond

// read returns the body; without an error the request is at work then. A heavy body
// is read at work, since that takes a processor too, but a sender that is slow
// keeps no place.
func (s *Server) read(r *http.Request, c caller, p route, weight int) ([]byte, error) {
	if weight == 1 {
		body, err := edge.ReadBodyOf(r, p.media, int64(p.maxBytes))
		if err == nil {
			err = s.lobby.Enter(r.Context(), c.party(), weight)
		}
		return body, err
	}
	if err := s.lobby.Enter(r.Context(), c.party(), weight); err != nil {
		return nil, err
	}
	loan := s.lobby.Lend(c.party(), weight, senderTime)
	body, err := edge.ReadBodyOf(r, p.media, int64(p.maxBytes))
	kept := loan.Keep()
	switch {
	case err != nil && kept:
		s.lobby.Leave(c.party(), weight)
	case err == nil && !kept:
		err = s.lobby.Enter(r.Context(), c.party(), weight)
	}
	return body, err
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
