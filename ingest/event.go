package ingest

import (
	"net/http"

	"github.com/agentledger/agentledger/internal/web"
	"github.com/agentledger/agentledger/org"
)

// postEvent serves POST /v1/ingest/events.
func (s *Server) postEvent(w http.ResponseWriter, r *http.Request) error {
	c, err := s.enter(r, org.ScopeEvents, "Invalid API key")
	if err != nil {
		return err
	}
	body, err := web.ReadBody(r, int64(s.maxBytes))
	if err != nil {
		return err
	}
	if err := version(w, r); err != nil {
		return err
	}
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return err
	}
	in := &intake{server: s, caller: c, idempotencyKey: key}
	in.read(r.Context(), body)
	s.settle(r.Context(), c, []*intake{in})
	if in.fate == refused {
		return in.err
	}
	in.answer().write(w)
	return nil
}
