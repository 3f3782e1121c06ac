package ingest

import (
	"net/http"

	"github.com/agentledger/agentledger/event"
)

// postEvent serves POST /v1/ingest/events.
func (s *Server) postEvent(w http.ResponseWriter, r *http.Request, c caller, body []byte) error {
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return err
	}
	requested, err := requestsApproval(r.Header, c)
	if err != nil {
		return err
	}
	replayOnly, err := asksReplayOnly(r.Header)
	if err != nil {
		return err
	}
	in := &incomingEvent{server: s, caller: c, idempotencyKey: key, traceparent: traceparent(r.Header)}
	ctx, read := s.edge.Tracer.StartSpan(r.Context(), "read event")
	in.readEvent(ctx, body)
	s.findReplays(ctx, c, in)
	if !replayOnly && in.statesSubject() {
		in.verifySubject(s.openSubjectToken(ctx, c, r.Header))
	}
	read.End()
	if replayOnly {
		s.answerStored(r.Context(), c, in)
	} else {
		s.settleEvents(r.Context(), c, []*incomingEvent{in})
		s.answerIntents(r.Context(), c, []*incomingEvent{in}, requested)
	}
	if in.fate == refused {
		return in.err
	}
	if in.fate == created {
		stated, _ := in.envelope.OnBehalfOf()
		setStanding(w.Header(), stated, in.standing == event.Verified)
	}
	s.writeJSON(w, in.renderAnswer())
	return nil
}
