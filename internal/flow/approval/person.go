package approval

import (
	"context"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// namesOf returns what a principal may call a person by: the id of the account and each address that
// it has or had, because a question that was asked under a former address is the person's own.
func (a *Approvals) namesOf(ctx context.Context, who account.ID) ([]string, error) {
	person, err := a.members.ByID(ctx, who)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	return append([]string{string(who), person.Email}, person.FormerEmails...), nil
}
