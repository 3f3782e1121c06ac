package witness

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// A ledger whose anchor is lost accepts no events, because the store may be an older copy. With Options.Anchor, a
// quorum of witnesses replaces the anchor: each confirms that the largest tree that it has seen is exactly the stored
// one.
//
// Invariants:
//
//   - Only new responses count. Stored cosignatures may be as old as the store, so they do not prove that no larger
//     tree was published since.
//   - The request has the size of the ledger as the old size. So a witness with a smaller tree confirms nothing, and
//     cannot extend its tree by the request.
//   - The quorum of the current policy and, if there is one, the quorum of the service are both required. An
//     organization's own witnesses are not enough.
//   - The ledger stays read-only as long as there is no quorum. No request waits for one.

// needsConfirmation reports whether the head of a ledger needs a quorum, because its anchor is lost.
func (w *Witnesses) needsConfirmation(ctx context.Context, t id.Tenant) (bool, error) {
	if !w.Anchor {
		return false, nil
	}
	anchored, err := w.Ledgers.Anchored(ctx, t)
	return !anchored && err == nil, err
}

// chooseToConfirm chooses all witnesses that have not rejected the ledger recently, including those whose cosignature
// of the head is stored.
func (r *round) chooseToConfirm() {
	r.record.applyPolicy(r.active)
	now := r.w.Clock()
	for _, e := range r.active.endpoints {
		if !r.record.mayBeCalled(e, id.InstantOf(now)) {
			_, at := r.record.submissionDue(e, tlog.Checkpoint{}, now)
			r.retry = r.retry.combineEarliest(retryTimes{paused: at})
			continue
		}
		a := r.newSubmission(e)
		a.old, a.guessed, a.exact = a.shown.Size, true, true
		r.submissions = append(r.submissions, a)
	}
}

// confirmHead asks the witnesses to confirm a head without an anchor, and makes the head the anchor if a quorum
// confirms it.
func (r *round) confirmHead(ctx context.Context) retryTimes {
	next, answers := r.submitToAll(ctx)
	identity := r.state.Identity()
	if !r.w.isConfirmedByQuorum(r.active, answers) {
		r.w.rare.Warn("no quorum of witnesses confirms a head without an anchor: the ledger stays read-only",
			"origin", identity.Origin, "size", r.state.Size())
		return next
	}
	if err := r.w.Ledgers.Adopt(ctx, identity.Tenant, r.state.Checkpoint()); err != nil {
		if ctx.Err() == nil {
			r.w.Logger.Error("head confirmed by witnesses could not be anchored", "origin", identity.Origin, "err", err)
		}
		return next.combineEarliest(retryTimes{paused: r.w.Clock().Add(storeRest)})
	}
	r.w.metrics.anchored.Inc()
	r.w.Logger.Warn("a quorum of witnesses confirmed a head without an anchor: the ledger accepts events again",
		"origin", identity.Origin, "size", r.state.Size())
	return next
}

// isConfirmedByQuorum reports whether the witnesses that cosigned form a quorum, and no witness has seen a different
// tree.
func (w *Witnesses) isConfirmedByQuorum(f *activePolicy, answers []outcome) bool {
	by := make(map[string]bool)
	for _, a := range answers {
		if a.result == contradicted {
			return false
		}
		for key := range a.lines {
			by[key] = true
		}
	}
	confirmed := func(k tlog.WitnessKey) bool { return by[k.Identity()] }
	for _, p := range []*trust.Policy{f.policy, w.base.policy} {
		if p.Quorum != trust.None && !p.Quorate(confirmed) {
			return false
		}
	}
	return f.policy.Quorum != trust.None
}
