package approval

import (
	"context"
	"slices"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// findRepresented returns the members in whose place others vote now, by the accounts of those deputies.
func (a *Approvals) findRepresented(ctx context.Context, t id.Tenant) (map[account.ID]account.ID, error) {
	if a.deputies == nil {
		return nil, nil
	}
	return a.deputies.Represented(ctx, t)
}

// sharesVote reports whether a vote that counts now was given by the voter's deputy, by the represented member, or in
// place of one of them: the voter has one vote together with them. If the other vote counts again later, validVotes
// leaves out one of the two.
func (v *voter) sharesVote(ctx context.Context, a *Approval, asker func(*person) bool) (bool, error) {
	for i := range a.Votes {
		given := &a.Votes[i]
		isOf := func(p person) bool { return p.ID == given.Account || p.ID == given.DeputyFor }
		if given.Account == v.who || !slices.ContainsFunc(v.people, isOf) {
			continue
		}
		counted, err := v.makers.owner.findCounted(ctx, v.state.Identity().Tenant, given, asker)
		if err != nil || len(counted) > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// findCounted returns the person who gave a vote, and the represented member if there is one, if the vote counts now:
// the voter is a member, one of the two may vote, and neither asked. Otherwise it returns nobody.
func (a *Approvals) findCounted(ctx context.Context, t id.Tenant, v *Vote, asker func(*person) bool) ([]person, error) {
	m, err := a.members.Membership(ctx, t, v.Account)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	people, err := a.findPeople(ctx, v.Account, v.DeputyFor)
	if err != nil {
		return nil, err
	}
	people[0].names = append(people[0].names, v.Email)
	may := MayVote(m.Role)
	if !may && v.DeputyFor != "" {
		may, err = a.isVoter(ctx, t, v.DeputyFor)
	}
	if err != nil || !may || slices.ContainsFunc(people, func(p person) bool { return asker(&p) }) {
		return nil, err
	}
	return people, nil
}
