package approval

import (
	"context"
	"slices"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// person is an account in the four-eyes checks.
type person struct {
	account.Account
	names []string // by which a principal may mention the account
}

// findPerson returns the person of an account. Its names are the account's ID and each address that it has or had,
// because a request that was made under a former address is still the person's own.
func (a *Approvals) findPerson(ctx context.Context, who account.ID) (person, error) {
	found, err := a.members.ByID(ctx, who)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return person{}, err
	}
	found.ID = who
	return person{found, append([]string{string(who), found.Email}, found.FormerEmails...)}, nil
}

// findPeople returns a voter, and the member in whose place the voter votes unless that is "".
func (a *Approvals) findPeople(ctx context.Context, who, represented account.ID) ([]person, error) {
	voter, err := a.findPerson(ctx, who)
	if err != nil || represented == "" {
		return []person{voter}, err
	}
	member, err := a.findPerson(ctx, represented)
	return []person{voter, member}, err
}

// isOneOf reports whether the person is one of others, or counts as one of them because the two accounts share an
// address that one of them has not proved.
func (p *person) isOneOf(others []person) bool {
	return slices.ContainsFunc(others, func(o person) bool { return p.ID == o.ID || p.SharesAddress(o.Account) })
}
