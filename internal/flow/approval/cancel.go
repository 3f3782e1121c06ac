package approval

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
)

// Cancel ends an open approval in the name of the ingest key that requested it. For all others the approval does not
// exist. It returns fault.Conflict if the approval has ended in another way. Cancelling it again has no effect.
func (a *Approvals) Cancel(ctx context.Context, t id.Tenant, ingestKey string, name ID) error {
	err := a.changeApproval(ctx, t, ingestKey, name, onlyAsker(ingestKey),
		func(ctx context.Context, _ *log.State, c *transaction, r *records.Versioned[record], status Status) error {
			return a.closeApproval(ctx, c, name, r, status, Cancelled, Remark{})
		})
	if err != nil {
		return fmt.Errorf("cancel approval: %w", err)
	}
	return nil
}

// Revoke ends an open approval in the name of an account, even if it was approved and not consumed. It returns
// fault.Invalid for a malformed remark, and fault.Conflict if the approval has ended in another way.
func (a *Approvals) Revoke(ctx context.Context, t id.Tenant, principal string, name ID, why Remark) error {
	if err := checkRemark("reason", why); err != nil {
		return err
	}
	err := a.changeApproval(ctx, t, principal, name, allowAnyone,
		func(ctx context.Context, _ *log.State, c *transaction, r *records.Versioned[record], status Status) error {
			return a.closeApproval(ctx, c, name, r, status, Revoked, why)
		})
	if err != nil {
		return fmt.Errorf("revoke approval: %w", err)
	}
	return nil
}

func (a *Approvals) closeApproval(
	ctx context.Context, c *transaction, name ID, r *records.Versioned[record], status, to Status, why Remark,
) error {
	switch {
	case status == to:
		return nil
	case !status.Open():
		return refusal{errConflict("The approval is " + string(status))}
	}
	r.Value.Revocation = why
	return c.endApproval(ctx, name, r, to, transition{remark: why})
}

// settleApproval records that an approval has expired or became invalid, if that is the case and not recorded yet.
func (a *Approvals) settleApproval(ctx context.Context, t id.Tenant, name ID) error {
	return a.changeApproval(ctx, t, sysevent.Operator, name, allowAnyone,
		func(context.Context, *log.State, *transaction, *records.Versioned[record], Status) error {
			return nil
		})
}
