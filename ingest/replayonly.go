package ingest

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/fault"
)

// replayOnlyHeader turns a request with an event into a question: is the event stored, and what was decided?
const replayOnlyHeader = "X-Replay-Only"

// asksReplayOnly reports whether a request must not store anything.
func asksReplayOnly(h http.Header) (bool, error) {
	switch values := h[replayOnlyHeader]; {
	case len(values) == 0:
		return false, nil
	case len(values) > 1 || values[0] != "1":
		return false, fault.New(fault.Invalid, "X-Replay-Only must be 1")
	}
	return true, nil
}

var errNotStored = &fault.Error{Kind: fault.NotFound, Code: "not_stored", Message: "Not found"}

// answerStored responds for an event that is stored, and refuses any other event. It requests no approval. A ledger
// with a fault may have lost the event, so it cannot deny that the event exists.
func (s *Server) answerStored(ctx context.Context, c caller, in *incomingEvent) {
	if in.fate == open {
		err := c.state.Trusted()
		if err == nil {
			err = errNotStored
		}
		in.refuseWith(err)
	}
	in.asksDecision = in.fate == replayed
	s.findDecisions(ctx, c, []*incomingEvent{in})
}
