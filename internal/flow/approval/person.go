package approval

import (
	"context"
	"slices"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// person is an account as the four-eyes checks see it.
type person struct {
	account.Account
	names []string // what a principal may call the person by
}

// findPerson returns the person of an account. Its names are the id of the account and each address that it has or
// had, because a question that was asked under a former address is the person's own.
func (a *Approvals) findPerson(ctx context.Context, who account.ID) (person, error) {
	found, err := a.members.ByID(ctx, who)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return person{}, err
	}
	found.ID = who
	return person{found, append([]string{string(who), found.Email}, found.FormerEmails...)}, nil
}

// isOneOf reports whether the person is one of others, or counts as one of them because an address that nobody has
// proved is also that of the other account.
func (p *person) isOneOf(others []person) bool {
	return slices.ContainsFunc(others, func(o person) bool { return p.ID == o.ID || p.SharesAddress(o.Account) })
}
