package ingest

import (
	"net/http"
)

// postEvent serves POST /v1/ingest/events.
func (s *Server) postEvent(w http.ResponseWriter, r *http.Request, c caller, body []byte) error {
	if err := version(w, r); err != nil {
		return err
	}
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return err
	}
	in := &intake{server: s, caller: c, idempotencyKey: key}
	ctx, read := s.edge.Tracer.StartSpan(r.Context(), "read event")
	in.read(ctx, body)
	s.recall(ctx, c, in)
	read.End()
	s.settle(r.Context(), c, []*intake{in})
	if in.fate == refused {
		return in.err
	}
	in.answer().write(w)
	return nil
}
