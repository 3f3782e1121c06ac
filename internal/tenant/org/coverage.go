package org

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
)

// StateCoverage states the result of a comparison of a tool's record of calls with the log (ledger_coverage_compared), and returns the log index of
// the event. The payload must make each statement another event. Statements are permanent, so it must have no text of the record.
func (o *Orgs) StateCoverage(ctx context.Context, t id.Tenant, principal string, payload map[string]any) (id.Index, error) {
	receipts, err := o.events.Append(ctx, t, principal, func(ctx context.Context, _ *log.State) (sysevent.Change, error) {
		paced, err := o.countStatement(ctx, t, principal)
		return sysevent.Change{Statements: []sysevent.Statement{{Kind: sysevent.CoverageCompared, Payload: payload}}, Changes: paced,
			KeepConfigVersion: true}, err
	})
	if err != nil {
		return 0, err
	}
	return receipts[0].Index, nil
}
