package account

import (
	"context"
	"net/netip"
	"strings"

	"github.com/agentledger/agentledger/fault"
)

// Authenticate checks a password. Every failure is
// fault.Unauthorized with one text after the same work; fault.RateLimited after
// too many attempts on the address or from the network.
func (a *Accounts) Authenticate(ctx context.Context, email, password string, from netip.Addr) (Account, error) {
	email = strings.ToLower(email)
	undo, err := a.attempts.countAttempt(email, from)
	if err != nil {
		return Account{}, err
	}
	who, r, err := a.findCandidate(ctx, email)
	if err != nil {
		return Account{}, err
	}
	ok, err := a.hasher.matchesHash(ctx, r.PasswordHash, password)
	if err != nil {
		return Account{}, err
	}
	if !ok {
		return Account{}, fault.New(fault.Unauthorized, "Invalid e-mail address or password")
	}
	undo()
	return r.toAccount(who), nil
}

// findCandidate returns the account of an address as it was typed, or an empty one.
func (a *Accounts) findCandidate(ctx context.Context, typed string) (ID, *accountRecord, error) {
	email, err := ParseEmail(typed)
	if err != nil {
		return "", new(accountRecord), nil
	}
	who, r, _, err := a.findByEmail(ctx, email)
	if fault.Is(err, fault.NotFound) {
		return "", new(accountRecord), nil
	}
	return who, r, err
}
