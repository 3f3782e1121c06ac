package approval

import (
	"cmp"
	"context"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/storage"
)

// kindIntent has the approval of each intent that needed one, by the ID of the event. It is kept after the approval has
// ended, because the same event never asks twice.
const kindIntent storage.Kind = "approval_intent"

// Intent is a stored event for which the ledger decided allow_with_obligation. Each intent has its own approval, even
// if two have the same action.
type Intent struct {
	Event        id.Event
	RuleID       string  // of the deciding rule
	PolicyDigest id.Hash // of the deciding policy
}

// findIntent returns the approval that the intent of a question requested. known is false if there is none.
func (a *Approvals) findIntent(ctx context.Context, s *log.State, q Question) (asked Approval, known bool, err error) {
	if q.Intent.Event == "" {
		return Approval{}, false, nil
	}
	t := s.Identity().Tenant
	link, err := a.stores.intents.Get(ctx, t, string(q.Intent.Event))
	if err != nil || !link.Exists() {
		return Approval{}, false, err
	}
	name := link.Value.Approval
	r, err := a.readApproval(ctx, t, name)
	if err != nil {
		return Approval{}, false, errUnreadable("read approval of an event", err)
	}
	if r.Value.IngestKeyID != q.IngestKeyID {
		return Approval{}, false, errConflict("Another ingest key requested the approval of this event")
	}
	j, err := a.newJudge(ctx, s)
	if err != nil {
		return Approval{}, false, err
	}
	status, err := j.findStatus(ctx, name, &r.Value)
	return r.Value.toApproval(name, status), true, err
}

// decideQuestion returns the outcome under which an approval is requested. The limits of an intent are not evaluated
// again under the policy that decided on it, because they have counted it since.
func (a *Approvals) decideQuestion(
	ctx context.Context, s *log.State, compiled *policy.Compiled, q Question, now id.Instant,
) (policy.Outcome, error) {
	in := policyInput(q.Agent, q.Tool, q.Payload, now)
	in.OnBehalfOf, in.Verified = q.OnBehalfOf, q.Standing == event.Verified
	in.ActorType, in.ActionKind = cmp.Or(q.ActorType, in.ActorType), cmp.Or(q.ActionKind, in.ActionKind)
	evaluation, err := policystore.Apply(ctx, compiled, in)
	if err != nil {
		return policy.Outcome{}, err
	}
	var out policy.Outcome
	if q.Intent.Event != "" && compiled != nil && compiled.Digest() == q.Intent.PolicyDigest {
		out = evaluation.Settle(func(c *policy.Claim) bool { return c.RuleID == q.Intent.RuleID })
	} else if out, err = policystore.DecideNow(ctx, a.ledgers, s, &evaluation, now); err != nil {
		return policy.Outcome{}, err
	}
	if out.Decision != id.AllowWithObligation {
		return policy.Outcome{}, fault.New(fault.Invalid,
			"No approval is needed or possible: the policy's decision is "+out.Decision.String())
	}
	return out, nil
}
