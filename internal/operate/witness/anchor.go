package witness

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// A ledger whose anchor is lost takes no events, because the store may be an older one.
// With Options.Anchor a quorum of witnesses stands in for the anchor: each says that the
// largest tree that it has seen of the log is exactly the stored one.
//
// Invariants:
//
//   - Only what witnesses say now counts. Cosignatures that are stored were brought back
//     with the store, and say nothing about what was shown since.
//   - A witness is asked with its old size being the ledger's, so it can't be brought to
//     extend what it knows: a witness that is at an earlier tree confirms nothing.
//   - The quorum is that of the policy in force for the ledger, and that of the service
//     where the service has one: an organization's own witnesses are not enough there.
//   - The ledger stays read-only as long as there is no quorum, and nobody waits for it.

// confirming reports whether the head of a ledger waits for a quorum in place of its anchor.
func (w *Witnesses) confirming(ctx context.Context, t id.Tenant) (bool, error) {
	if !w.Anchor {
		return false, nil
	}
	anchored, err := w.Ledgers.Anchored(ctx, t)
	return !anchored && err == nil, err
}

// chooseToConfirm picks who is asked about a head without an anchor: all who do not
// refuse the ledger, also those whose cosignature of it is stored.
func (r *asked) chooseToConfirm() {
	r.page.fit(r.force)
	now := r.w.Clock()
	for _, e := range r.force.endpoints {
		if !r.page.wants(e, id.InstantOf(now)) {
			_, at := r.page.due(e, tlog.Checkpoint{}, now)
			r.again = r.again.or(again{paused: at})
			continue
		}
		a := r.about(e)
		a.old, a.guessed, a.exact = a.shown.Size, true, true
		r.asks = append(r.asks, a)
	}
}

// confirmHead asks about a head without an anchor, and makes it the anchor when a quorum
// confirms it.
func (r *asked) confirmHead(ctx context.Context) again {
	next, answers := r.askAll(ctx)
	identity := r.state.Identity()
	if !r.w.enough(r.force, answers) {
		r.w.rare.Warn("no quorum of witnesses confirms a head without an anchor: the ledger stays read-only", "origin", identity.Origin, "size", r.state.Size())
		return next
	}
	if err := r.w.Ledgers.Adopt(ctx, identity.Tenant, r.state.Checkpoint()); err != nil {
		if ctx.Err() == nil {
			r.w.Logger.Error("head not made the anchor that witnesses confirmed", "origin", identity.Origin, "err", err)
		}
		return next.or(again{paused: r.w.Clock().Add(storeRest)})
	}
	r.w.metrics.anchored.Inc()
	r.w.Logger.Warn("a quorum of witnesses confirmed a head without an anchor: the ledger takes events again",
		"origin", identity.Origin, "size", r.state.Size())
	return next
}

// enough reports whether those who answered with a cosignature are a quorum, and nobody
// knows of another tree.
func (w *Witnesses) enough(f *force, answers []answered) bool {
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
