package org

import (
	"context"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
)

// maxReason is the maximum number of characters in the reason for correcting a clock.
const maxReason = 1024

// Corrected describes a ledger that was set back to the time of the clock.
type Corrected struct {
	Newest   id.Instant // received_at of the latest event before the correction
	Received id.Instant // of the event that states the correction
	Index    id.Index   // of that event
}

// CorrectClock allows the ledger of an organization to continue that accepted events while a clock was ahead, and
// states this publicly with the reason. It returns fault.Invalid if the reason is empty or longer than 1,024
// characters, fault.Conflict if the ledger is not ahead of the clock, and the errors of sysevent.Appender.Append.
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
