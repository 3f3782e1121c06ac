package publicapi

import (
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
)

// answerReceipt serves verify/:eventId as the COSE receipt of the event's entry, under the checkpoint that its bundle
// has. Unlike a bundle it contains no text of the event, so clients may store it.
func (s *Server) answerReceipt(r *request, state *log.State) (response, error) {
	state, at, err := s.findProvable(r.Context(), state, edge.PathParameter(r.Request, "event"), r.origin())
	if err != nil {
		return response{}, err
	}
	c, _, err := s.witnesses.Covering(r.Context(), state, at)
	if err != nil {
		return response{}, err
	}
	if c.Size < tlog.MinReceiptTree {
		c = state.Shown() // receipts have no cosignatures, which may lag behind
	}
	if c.Size < tlog.MinReceiptTree {
		return response{}, &fault.Error{Kind: fault.Unavailable, Code: "unavailable", RetryAfter: time.Minute,
			Message: "The only entry of a log has no COSE receipt; try again when the log has a second entry"}
	}
	e, err := s.ledgers.Event(r.Context(), state, at, 0)
	if err != nil {
		return response{}, err
	}
	proof, err := s.ledgers.InclusionOf(r.Context(), state, e, c.Size)
	if err != nil {
		return response{}, err
	}
	receipt, err := state.SignReceipt(c, at, proof)
	if err != nil {
		return response{}, err
	}
	return response{media: mediaCOSE, cache: revalidate, vary: "Accept", body: receipt.Bytes()}, nil
}
