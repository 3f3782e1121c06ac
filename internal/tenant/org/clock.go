package org

import (
	"context"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
)

// maxReason is how many characters the reason of a corrected clock may have.
const maxReason = 1024

// Corrected is a ledger that came back to the time of the clock.
type Corrected struct {
	Newest   id.Instant // received_at of the newest event before
	Received id.Instant // of the event that says so
	Index    id.Index   // of that event
}

// CorrectClock lets the ledger of an organization go on that took events while a
// clock was ahead, and states that with its reason, for all to read. fault.Invalid for
// a reason that is empty or of more than 1,024 characters; fault.Conflict when the
// ledger is not ahead of the clock; other errors are those of the notary.
func (o *Orgs) CorrectClock(ctx context.Context, t id.Tenant, principal, reason string) (c Corrected, err error) {
	if !textcheck.Plain(reason, 1, maxReason) {
		return c, fault.New(fault.Invalid, "reason must have 1 to 1024 characters, none of them a control character")
	}
	var made *log.ClockChange
	receipts, err := o.events.Append(ctx, t, principal,
		func(ctx context.Context, s *log.State) (act sysevent.Change, err error) {
			if made, err = o.ledgers.CorrectClock(ctx, s); err != nil {
				return act, err
			}
			return sysevent.Change{
				Clock:      made,
				Statements: []sysevent.Statement{{Kind: sysevent.Clock, Payload: made.Payload(reason)}},
			}, nil
		})
	if err != nil {
		return c, err
	}
	return Corrected{Newest: made.Before, Received: receipts[0].ReceivedAt, Index: receipts[0].Index}, nil
}
