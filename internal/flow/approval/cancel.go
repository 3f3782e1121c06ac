package approval

import (
	"context"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/log"
)

// Cancel ends an open approval in the name of the ingest key that requested it. For all others the approval does not
// exist. It returns fault.Conflict if the approval has ended in another way. Cancelling it again has no effect.
func (a *Approvals) Cancel(ctx context.Context, t id.Tenant, ingestKey string, name ID) error {
	err := a.changeApproval(ctx, t, ingestKey, name, onlyAsker(ingestKey),
		func(ctx context.Context, _ *log.State, c *transaction, r *records.Versioned[record], status Status) error {
			return a.closeApproval(ctx, c, name, r, status, Cancelled, transition{})
		})
	if err != nil {
		return fmt.Errorf("cancel approval: %w", err)
	}
	return nil
}

// Revoke ends an open approval in the name of an account, even if it was approved and not consumed. If the account is a
// deputy now, the log names the represented member. It returns fault.Invalid for a malformed remark, and fault.Conflict
// if the approval has ended in another way.
func (a *Approvals) Revoke(ctx context.Context, t id.Tenant, who account.ID, name ID, why Remark) error {
	if err := checkRemark("reason", why); err != nil {
		return err
	}
	err := a.changeApproval(ctx, t, string(who), name, allowAnyone,
		func(ctx context.Context, _ *log.State, c *transaction, r *records.Versioned[record], status Status) error {
			represented, err := a.findRepresented(ctx, t)
			if err != nil {
				return err
			}
			return a.closeApproval(ctx, c, name, r, status, Revoked, transition{remark: why, deputyFor: represented[who]})
		})
	if err != nil {
		return fmt.Errorf("revoke approval: %w", err)
	}
	return nil
}

// TakeBackTime is how long voters are offered to take an approving vote back. Revoke does that.
const TakeBackTime = 5 * time.Minute

// TakeBackUntil returns until when a voter is offered to take back a vote by which an approval was approved, or 0 if the
// approval was used, or the voter did not vote for it in the last TakeBackTime.
func (a *Approvals) TakeBackUntil(on *Approval, who account.ID) id.Instant {
	if on.Status != Approved {
		return 0
	}
	for _, v := range on.Votes {
		until := min(v.At+id.Instant(TakeBackTime.Milliseconds()), on.ExpiresAt)
		if v.Account == who && v.Vote == Approve && a.currentTime() < until {
			return until
		}
	}
	return 0
}

func (a *Approvals) closeApproval(
	ctx context.Context, c *transaction, name ID, r *records.Versioned[record], status, to Status, how transition,
) error {
	switch {
	case status == to:
		return nil
	case !status.Open():
		return refusal{errConflict("The approval is " + string(status))}
	}
	r.Value.Revocation = how.remark
	return c.endApproval(ctx, name, r, to, how)
}

// settleApproval records that an approval has expired or became invalid, if that is the case and not recorded yet.
func (a *Approvals) settleApproval(ctx context.Context, t id.Tenant, name ID) error {
	return a.changeApproval(ctx, t, sysevent.Operator, name, allowAnyone,
		func(context.Context, *log.State, *transaction, *records.Versioned[record], Status) error {
			return nil
		})
}
