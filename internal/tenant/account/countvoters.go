package account

import (
	"context"

	"github.com/agentledger/agentledger/id"
)

// CountVoters returns how many members of an organization may vote on approvals now. It stops counting at enough.
func (a *Accounts) CountVoters(ctx context.Context, t id.Tenant, enough int) (voters int, err error) {
	members, err := a.Members(ctx, t)
	for i := range members {
		if m := &members[i]; m.IsEffective() && m.Role.May(Vote) && voters < enough {
			voters++
		}
	}
	return voters, err
}
