package account

import (
	"context"
	"errors"
	"net/netip"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/tenant/password"
)

// Authenticate checks a password. It returns fault.Unauthorized with the same text after the same work for every
// failure, and fault.RateLimited after too many attempts for the address from the network, for the address from all
// networks, or from the network for all addresses.
func (a *Accounts) Authenticate(ctx context.Context, email, password string, from netip.Addr) (Account, error) {
	return a.AuthenticateIn(ctx, Browser{}, email, password, from)
}

// AuthenticateIn is like Authenticate, in a browser that may be known. Attempts of a known browser have a separate
// limit.
func (a *Accounts) AuthenticateIn(
	ctx context.Context, b Browser, email, password string, from netip.Addr,
) (Account, error) {
	email = strings.ToLower(email)
	undo, err := a.attempts.countAttempt(email, from, b)
	if err != nil {
		return Account{}, err
	}
	who, r, err := a.findCandidate(ctx, email)
	if err != nil {
		return Account{}, err
	}
	ok, err := a.matchesHash(ctx, r.PasswordHash, password)
	if err != nil {
		return Account{}, err
	}
	if !ok {
		return Account{}, fault.New(fault.Unauthorized, "Invalid e-mail address or password")
	}
	undo()
	return r.toAccount(who), nil
}

// findCandidate returns the account of an address as it was typed. If there is none, it returns an empty one after
// the same number of reads.
func (a *Accounts) findCandidate(ctx context.Context, typed string) (ID, *accountRecord, error) {
	email, err := ParseEmail(typed)
	if err != nil {
		return "", new(accountRecord), nil
	}
	who, r, _, err := a.findByEmail(ctx, email)
	if !fault.Is(err, fault.NotFound) {
		return who, r, err
	}
	_, _, err = a.findByID(ctx, decoyFor(email))
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return "", new(accountRecord), err
}

// matchesHash reports whether stored is the hash of password. If stored is "", it returns false after the same work.
// It returns an error if the hash is damaged.
func (a *Accounts) matchesHash(ctx context.Context, stored, text string) (bool, error) {
	ok, err := a.hasher.MatchesHash(ctx, stored, text)
	if errors.Is(err, password.ErrMalformed) {
		err = errUnreadable("check password", err)
	}
	return ok, err
}
