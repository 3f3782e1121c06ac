package account

import (
	"context"
	"errors"
	"net/netip"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/tenant/password"
)

// Authenticate checks a password. Every failure is
// fault.Unauthorized with one text after the same work; fault.RateLimited after
// too many attempts on the address from the network, from all networks or on all addresses.
func (a *Accounts) Authenticate(ctx context.Context, email, password string, from netip.Addr) (Account, error) {
	return a.AuthenticateIn(ctx, Browser{}, email, password, from)
}

// AuthenticateIn is Authenticate in a browser that may be known, with a budget of its own then.
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

// findCandidate returns the account of an address as it was typed, or an empty one after as many
// reads.
func (a *Accounts) findCandidate(ctx context.Context, typed string) (ID, *accountRecord, error) {
	email, err := ParseEmail(typed)
	if err != nil {
		return "", new(accountRecord), nil
	}
	who, r, _, err := a.findByEmail(ctx, email)
	if !fault.Is(err, fault.NotFound) {
		return who, r, err
	}
	_, _, err = a.findByID(ctx, decoyOf(email))
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return "", new(accountRecord), err
}

// matchesHash reports whether stored is the hash of password. With no stored hash the answer is no,
// after the same work. An account whose hash is damaged can't be read.
func (a *Accounts) matchesHash(ctx context.Context, stored, text string) (bool, error) {
	ok, err := a.hasher.MatchesHash(ctx, stored, text)
	if errors.Is(err, password.ErrMalformed) {
		err = errUnreadable("check password", err)
	}
	return ok, err
}
