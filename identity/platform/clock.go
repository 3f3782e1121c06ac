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

func describeClock(s clock.Status) wire.Clock {
	return wire.Clock{TrustedAt: id.InstantOf(s.Trusted), WallAt: id.InstantOf(s.Wall),
		OffsetMS: s.Offset.Milliseconds(), Held: s.Held != "", HeldReason: s.Held}
}

func (c *Calls) answerClock(w http.ResponseWriter, _ *http.Request, _ edge.Body) error {
	return write(w, http.StatusOK, c.ShowClock(), nil)
}

// ShowClock returns the state of the service's clock.
func (c *Calls) ShowClock() wire.Clock { return describeClock(c.Clock.Status()) }

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
	return write(w, http.StatusOK, c.AcceptClock(), nil)
}

// AcceptClock accepts the machine's clock as correct.
func (c *Calls) AcceptClock() wire.Clock { return describeClock(c.Clock.Accept()) }

func (c *Calls) correctClock(w http.ResponseWriter, r *http.Request, bounds edge.Body) error {
	var body struct {
		Reason string `json:"reason"`
	}
	if err := decodeBody(r, bounds, &body); err != nil {
		return err
	}
	done, err := c.CorrectClock(r.Context(), organizationOfPath(r), body.Reason)
	return write(w, http.StatusOK, done, err)
}

// CorrectClock makes a log that is ahead of the clock continue with the current time. It continues if the client
// disconnects, because otherwise its outcome would be unknown.
func (c *Calls) CorrectClock(ctx context.Context, organization, reason string) (wire.CorrectedClock, error) {
	tenant, err := c.FindOrganization(ctx, organization)
	if err != nil {
		return wire.CorrectedClock{}, err
	}
	done, err := c.Orgs.CorrectClock(context.WithoutCancel(ctx), tenant, sysevent.Operator, reason)
	if err != nil {
		return wire.CorrectedClock{}, err
	}
	return wire.CorrectedClock{Latest: done.Newest, Received: done.Received, Sequence: done.Index.Sequence()}, nil
}
