package platform

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/wire"
)

func writeClockStatus(w http.ResponseWriter, s clock.Status) error {
	return edge.WriteJSON(w, http.StatusOK, wire.Clock{
		TrustedAt: id.InstantOf(s.Trusted), WallAt: id.InstantOf(s.Wall), OffsetMS: s.Offset.Milliseconds(),
		Held: s.Held != "", HeldReason: s.Held,
	})
}

func (c *Calls) answerClock(w http.ResponseWriter, _ *http.Request, _ edge.Body) error {
	return writeClockStatus(w, c.Clock.Status())
}

// acceptClock accepts the machine's clock as correct.
func (c *Calls) acceptClock(w http.ResponseWriter, r *http.Request, bounds edge.Body) error {
	var body struct {
		Accept bool `json:"accept"`
	}
	if err := decodeBody(r, bounds, &body); err != nil {
		return err
	}
	if !body.Accept {
		return fault.New(fault.Invalid, "accept must be true")
	}
	return writeClockStatus(w, c.Clock.Accept())
}

// correctClock continues if the client disconnects, because otherwise its outcome would be unknown.
func (c *Calls) correctClock(w http.ResponseWriter, r *http.Request, bounds edge.Body) error {
	tenant, err := c.FindOrganization(r)
	if err != nil {
		return err
	}
	var body struct {
		Reason string `json:"reason"`
	}
	if err := decodeBody(r, bounds, &body); err != nil {
		return err
	}
	done, err := c.Orgs.CorrectClock(context.WithoutCancel(r.Context()), tenant, sysevent.Operator, body.Reason)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK,
		wire.CorrectedClock{Latest: done.Newest, Received: done.Received, Sequence: done.Index.Sequence()})
}
