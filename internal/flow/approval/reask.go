package approval

import (
	"cmp"
	"context"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
)

// judge finds the status of approvals under the policy that is active in one state of a ledger. It must not be used
// concurrently.
type judge struct {
	owner     *Approvals
	tenant    id.Tenant
	active    *policy.Compiled // nil if none
	digest    id.Hash          // of active; zero if none
	evaluated int              // number of evaluations of the policy
}

func (a *Approvals) newJudge(ctx context.Context, s *log.State) (*judge, error) {
	j := &judge{owner: a, tenant: s.Identity().Tenant}
	var err error
	if j.active, err = a.policies.Active(ctx, s); err == nil && j.active != nil {
		j.digest = j.active.Digest()
	}
	return j, err
}

// findStatus returns the current status. Time or policy may have ended the approval before the event that records that
// is written.
func (j *judge) findStatus(ctx context.Context, name ID, r *record) (Status, error) {
	status := r.statusByTime(j.owner.currentTime())
	if !status.Open() || j.digest == r.PolicyDigest {
		return status, nil
	}
	obliges, err := j.stillObliges(ctx, name, r)
	if err == nil && !obliges {
		status = Invalidated
	}
	return status, err
}

// verdictKey identifies an approval's question under a policy. The verdict never changes, because both are immutable.
type verdictKey struct {
	tenant   id.Tenant
	approval ID
	policy   id.Hash
}

// verdictsKept bounds the cached verdicts, about 200 bytes each.
const verdictsKept = 20_000

func newVerdicts() *cache.Map[verdictKey, bool] {
	return cache.NewMap(cache.MapOptions[verdictKey, bool]{Limit: verdictsKept})
}

// stillObliges evaluates the active policy for an approval's question, and reports whether the same rule asks for the
// same approval or for a weaker one.
func (j *judge) stillObliges(ctx context.Context, name ID, r *record) (obliges bool, err error) {
	if j.active == nil {
		return false, nil
	}
	key := verdictKey{j.tenant, name, j.digest}
	if obliges, known := j.owner.verdicts.Get(key); known {
		return obliges, nil
	}
	if r.ErasedAt != 0 { // the question is no longer known
		return false, nil
	}
	j.evaluated++
	in := policyInput(r.Agent, r.Tool, r.Payload, r.CreatedAt)
	in.OnBehalfOf, in.Verified = r.OnBehalfOf, r.Standing == event.Verified
	in.ActorType, in.ActionKind = cmp.Or(r.ActorType, in.ActorType), cmp.Or(r.ActionKind, in.ActionKind)
	evaluation, err := policystore.Apply(ctx, j.active, in)
	if err != nil {
		return false, ctx.Err() // if the policy times out, it asks for nothing
	}
	obliges = isWeaker(&evaluation, r)
	j.owner.verdicts.Put(key, obliges)
	return obliges, nil
}

// Forecast counts what would become of the open approvals of an organization: those that are pending, and those that are
// approved and not yet used.
type Forecast struct {
	Stay, End int
	Unknown   int // not evaluated, because a forecast evaluates at most 200 approvals
}

// Foresee returns what would become of the open approvals if next were the active policy, or if none were, with nil. It
// changes nothing.
func (a *Approvals) Foresee(ctx context.Context, t id.Tenant, next *policy.Compiled) (f Forecast, err error) {
	s, err := a.ledgers.State(ctx, t)
	if err != nil {
		return f, err
	}
	now, err := a.newJudge(ctx, s)
	if err != nil {
		return f, err
	}
	then := &judge{owner: a, tenant: t, active: next}
	if next != nil {
		then.digest = next.Digest()
	}
	if err := a.ensureListed(ctx, t); err != nil {
		return f, err
	}
	names, err := a.openNames(ctx, t)
	if err != nil {
		return f, err
	}
	for i, name := range names {
		if now.evaluated+then.evaluated >= 2*listEvaluations {
			f.Unknown = len(names) - i
			return f, nil
		}
		entry, err := a.stores.open.List.Get(ctx, t, records.ReverseKey(string(name)))
		if err != nil {
			return f, err
		}
		status, err := now.findListed(ctx, name, &entry.Value)
		if err != nil {
			return f, err
		}
		if !status.Open() { // it has ended, which no event records yet
			continue
		}
		if status, err = then.findListed(ctx, name, &entry.Value); err != nil {
			return f, err
		}
		if status.Open() {
			f.Stay++
		} else {
			f.End++
		}
	}
	return f, nil
}

// policyInput returns the input of the policy for an approval's question. It never changes.
func policyInput(a id.Agent, tool id.Tool, payload []byte, now id.Instant) policy.Input {
	return policy.Input{
		Tool: tool, Agent: a, ActorType: "agent", ActionKind: "tool_call", Payload: payload, Now: now,
	}
}

// isWeaker reports whether an evaluation asks for the approval of r or for a weaker one, by the same rule. Fewer
// approvers, more time and votes without signatures are weaker. Counters do not matter: a limit counts as exceeded if
// its rule is the rule that r was requested under.
func isWeaker(e *policy.Evaluation, r *record) bool {
	out := e.Settle(func(c *policy.Claim) bool { return c.RuleID == r.RuleID })
	if out.Decision != id.AllowWithObligation || out.RuleID != r.RuleID {
		return false
	}
	quorum, life := strictestDemands(out.Obligations)
	return (r.Signed || !demandsSignature(out.Obligations)) && quorum <= r.Quorum && life.Milliseconds() >= int64(r.ExpiresAt-r.CreatedAt)
}
