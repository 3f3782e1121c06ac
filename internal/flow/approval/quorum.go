package approval

import (
	"context"
	"slices"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// askersOf returns the users who count as having asked, so that two users examine each action: the creators of the
// ingest key and the agent, the users who registered an active key of the agent, and the principal that the agent
// names. The list is empty if the organization allows self-review.
func (a *Approvals) askersOf(ctx context.Context, s *log.State, r *record) (func(*person) bool, error) {
	asked := r.toApproval("", r.Status)
	return newMakers(a).findAskers(ctx, s, &asked)
}

// validVotes returns the votes that count now: those of people who may vote and did not ask. Votes of a member who
// lost the role no longer count. If several accounts count as one person, or one voted as deputy of the other, only the
// first vote counts.
func (a *Approvals) validVotes(ctx context.Context, s *log.State, r *record) ([]Vote, error) {
	asker, err := a.askersOf(ctx, s, r)
	if err != nil {
		return nil, err
	}
	var counted []Vote
	var before []person // who voted, and in whose place
	for _, v := range r.Votes {
		people, err := a.findCounted(ctx, s.Identity().Tenant, &v, asker)
		if err != nil {
			return nil, err
		}
		repeats := slices.ContainsFunc(people, func(p person) bool { return p.isOneOf(before) })
		if len(people) > 0 && !repeats {
			counted, before = append(counted, v), append(before, people...)
		}
	}
	return counted, nil
}

// Agreed returns how many approving votes of an approval count now. It can be fewer than the approval has.
func (a *Approvals) Agreed(ctx context.Context, t id.Tenant, name ID) (int, error) {
	s, err := a.ledgers.State(ctx, t)
	if err != nil {
		return 0, err
	}
	r, err := a.readApproval(ctx, t, name)
	if err != nil {
		return 0, err
	}
	counted, err := a.validVotes(ctx, s, &r.Value)
	return countAgreements(counted), err
}

// countAgreements returns the number of approving votes.
func countAgreements(votes []Vote) (n int) {
	for _, v := range votes {
		if v.Vote == Approve {
			n++
		}
	}
	return n
}

// recheckQuorum checks whether an approved approval still has its quorum. If not, it is pending again, without the
// votes that no longer count: others may vote, and so may voters who get their role back.
func (a *Approvals) recheckQuorum(
	ctx context.Context, s *log.State, c *transaction, name ID, r *records.Versioned[record],
) error {
	counted, err := a.validVotes(ctx, s, &r.Value)
	if err != nil || countAgreements(counted) >= r.Value.Quorum {
		return err
	}
	r.Value.Status, r.Value.Votes = Pending, counted
	c.appendStatement(name, &r.Value, transition{name: string(Pending), own: true})
	if err := c.putApproval(*r); err != nil {
		return err
	}
	return refusal{errQuorumLost()}
}

func errQuorumLost() error {
	return &fault.Error{Kind: fault.Conflict, Code: "quorum_lost",
		Message: "An approver may no longer decide on this: the approval is pending again"}
}

// NoneOpen returns fault.Conflict with code approvals_open if approvals of an organization are open. Otherwise it
// returns a change that fails if an approval is requested in the meantime. It guards settings that may change only
// while no agent waits for a decision.
func (a *Approvals) NoneOpen(ctx context.Context, t id.Tenant) ([]storage.Change, error) {
	tally, err := a.stores.open.Tallies.Get(ctx, t, "")
	if err != nil {
		return nil, err
	}
	if tally.Value.Open > 0 {
		return nil, &fault.Error{Kind: fault.Conflict, Code: "approvals_open",
			Message: "Approvals are open: self_review can be enabled once all of them are " +
				"decided, used, cancelled or expired"}
	}
	change, err := a.stores.open.Tallies.Put(tally)
	return []storage.Change{change}, err
}

// forEachKey calls f with the keys of an agent until it returns false.
func (a *Approvals) forEachKey(ctx context.Context, t id.Tenant, who id.Agent, f func(*agent.Key) bool) error {
	for after := id.Key(""); ; {
		keys, err := a.agents.ListKeys(ctx, t, who, after, keyPage)
		if err != nil {
			return err
		}
		for i := range keys {
			if !f(&keys[i]) {
				return nil
			}
		}
		if len(keys) < keyPage {
			return nil
		}
		after = keys[len(keys)-1].ID
	}
}
