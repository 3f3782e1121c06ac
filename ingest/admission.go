package ingest

import (
	"net/http"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/org"
)

// call answers a request of a caller that was let in.
type call func(w http.ResponseWriter, r *http.Request, c caller) error

// serve lets callers of a scope in while there is room, before anything of the
// body is looked at, and takes the speed out of floods of what is refused.
// unauthorized is what strangers are told.
func (s *Server) serve(scope org.Scope, unauthorized string, h call) http.Handler {
	return s.edge.Handle(func(w http.ResponseWriter, r *http.Request) error {
		c, err := s.enter(r, scope, unauthorized)
		if err == nil {
			err = s.admit(w, r, c, h)
		}
		if err != nil {
			s.brake.Hold(r.Context(), c.tenant())
		}
		return err
	})
}

func (s *Server) admit(w http.ResponseWriter, r *http.Request, c caller, h call) error {
	weight := weightOf(r.ContentLength)
	if err := s.gate.Enter(c.Tenant, weight); err != nil {
		return err
	}
	defer s.gate.Leave(c.Tenant, weight)
	return h(w, r, c)
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
