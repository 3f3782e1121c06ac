package workflow

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/log"
)

// Consumed is an approval that a step consumed.
type Consumed struct {
	Approval approval.ID
	Grant    string // signed note; "" if it has expired
}

// checkApproval checks the approval of a step. seen contains the approvals of the steps before it in the request.
func checkApproval(s *Step, where string, seen map[approval.ID]bool) error {
	switch {
	case s.Approval == "":
		return nil
	case !event.ValidEvent(string(s.Approval)):
		return errInvalid(where + "approval_id must match [A-Za-z0-9._:-]{1,128}, not . or ..")
	case s.Tool == "":
		return errInvalid(where + "approval_id requires tool_name")
	case event.ParseCall(s.Payload).IsResult():
		return errInvalid(where + "approval_id belongs to the step before the act, not to its result")
	case seen[s.Approval]:
		return errInvalid(where + "approval_id is already used by an earlier step in the list")
	}
	seen[s.Approval] = true
	return nil
}

// consumes reports whether a step consumes its approval. If the policy denies the step, the approval is kept. A limit
// may deny it only in the append; then the approval is consumed.
func (m *making) consumes(s *Step) bool {
	return s.Approval != "" && m.judged.Policy.Effective != id.Deny
}

// consumeApprovals adds the consumption of the approvals of new steps to their submission, after the events of the
// steps.
func (r *recording) consumeApprovals(
	ctx context.Context, s *log.State, fresh []int, sub *log.Submission,
) error {
	w := r.workflows
	for n, i := range fresh {
		m, step := r.made[n], &r.steps[i]
		if !m.consumes(step) {
			continue
		}
		if r.uses == nil {
			r.uses = w.approvals.BeginUses(s, r.ingestKey)
		}
		note, err := r.uses.Consume(ctx, approval.Use{
			Approval: step.Approval, Step: m.envelope.EventID, Action: grant.ActionOf(m.envelope),
		})
		if err != nil {
			r.refused = step.Approval
			return r.prefixError(i, err)
		}
		m.result.Consumed = &Consumed{Approval: step.Approval, Grant: note}
	}
	if r.uses == nil {
		return nil
	}
	change, err := r.uses.Build(ctx)
	if err != nil {
		return err
	}
	drafts, err := w.events.Draft(ctx, s, r.ingestKey, change.Statements)
	sub.Drafts, sub.Changes = append(sub.Drafts, drafts...), append(sub.Changes, change.Changes...)
	return err
}

// prefixError adds the step of a list to its error.
func (r *recording) prefixError(step int, err error) error {
	known := fault.Of(err)
	if len(r.steps) == 1 || known.Message == "" {
		return err
	}
	named := *known
	named.Message, named.Err = fmt.Sprintf("[%d].approval_id: %s", step, known.Message), err
	return &named
}

// settleRefused records the state of a refused approval. If that fails, the sweep records it later.
func (r *recording) settleRefused(ctx context.Context) {
	if r.refused != "" {
		_ = r.workflows.approvals.SettleOwn(ctx, r.place.tenant, r.ingestKey, r.refused)
	}
}

// recallConsumed returns the approval that a known step consumed. The grant is included only if the ledger's records
// may be trusted.
func (w *Workflows) recallConsumed(ctx context.Context, s *log.State, name approval.ID) (*Consumed, error) {
	if name == "" {
		return nil, nil
	}
	if s.Trusted() != nil {
		return &Consumed{Approval: name}, nil
	}
	note, err := w.approvals.LiveGrant(ctx, s.Identity().Tenant, name)
	return &Consumed{Approval: name, Grant: note}, err
}
