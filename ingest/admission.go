package ingest

import (
	"net/http"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/web"
	"github.com/agentledger/agentledger/org"
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
func (s *Server) serve(p route) http.Handler {
	return s.edge.Handle(func(w http.ResponseWriter, r *http.Request) error {
		c, err := s.enter(r, p.scope, p.unauthorized)
		if err == nil {
			err = s.admit(w, r, c, p)
		}
		if err != nil {
			s.brake.Hold(r.Context(), c.tenant())
		}
		return err
	})
}

func (s *Server) admit(w http.ResponseWriter, r *http.Request, c caller, p route) error {
	weight := weightOf(r.ContentLength)
	if err := s.gate.Enter(c.Tenant, weight); err != nil {
		return err
	}
	defer s.gate.Leave(c.Tenant, weight)
	body, err := web.ReadBodyOf(r, p.media, int64(p.maxBytes))
	if err != nil {
		return err
	}
	if err := s.lobby.Enter(r.Context(), c.Tenant, weight); err != nil { // slow senders don't get here
		return err
	}
	defer s.lobby.Leave(c.Tenant, weight)
	return p.answer(w, r, c, body)
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

// tenant returns whose request it is, id.Service when that is not known.
func (c caller) tenant() id.Tenant {
	if c.Caller == nil {
		return id.Service
	}
	return c.Tenant
}
