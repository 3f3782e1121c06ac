package account

import (
	"context"
	"errors"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Owner returns the account of an address for a new organization, and creates it if there is none, like Ensure. known
// reports whether the account may already be in use; the organization must then offer a membership. An unproved
// account is taken over and is not known. If a failed call left an account behind, the same call does not report it
// as known: the account is in no organization, and has the same password or none.
//
// It returns the errors of Ensure, and fault.Conflict with code account_known if a password is given for a known
// account.
func (a *Accounts) Owner(
	ctx context.Context, email, password string, names ...string,
) (who Account, known bool, err error) {
	who, made, err := a.Ensure(ctx, email, password, names...)
	if err != nil || made {
		return who, false, err
	}
	unused, err := a.checkUnused(ctx, who, password)
	if err != nil || unused {
		return who, false, err
	}
	if password != "" {
		return Account{}, true, &fault.Error{Kind: fault.Conflict, Code: "account_known",
			Message: "The account already exists: omit admin_password, and the person accepts by signing in"}
	}
	return who, true, nil
}

// checkUnused reports whether an account has no membership or offer, and its password is the given one, or "" if it
// has none.
func (a *Accounts) checkUnused(ctx context.Context, who Account, password string) (bool, error) {
	places, err := a.Places(ctx, who.ID)
	if err != nil || len(places) > 0 || who.HasPassword != (password != "") {
		return false, err
	}
	if password == "" {
		return true, nil
	}
	r, _, err := a.findByID(ctx, who.ID)
	if err != nil {
		return false, err
	}
	return a.matchesHash(ctx, r.PasswordHash, password)
}

// Accept accepts an offered membership. If the account is already a member, it does nothing. It returns
// fault.NotFound if nothing was offered or the membership is suspended, and fault.Forbidden with code
// address_unproved for an unproved account, to which an older program may have made an offer.
func (a *Accounts) Accept(ctx context.Context, t id.Tenant, who ID) (Membership, error) {
	m, err := a.readMembership(ctx, t, who)
	if err != nil || !m.Offered {
		return a.Membership(ctx, t, who)
	}
	if m.Suspended {
		return Membership{}, fault.New(fault.NotFound, "Not found")
	}
	if err := a.CheckProved(ctx, who); err != nil {
		return Membership{}, err
	}
	m.Offered, m.Since = false, id.InstantOf(a.clock())
	change, err := m.Put()
	if err != nil {
		return Membership{}, err
	}
	err = a.records.Write(ctx, t, []storage.Change{change})
	if errors.Is(err, storage.ErrStale) { // another sign-in was faster
		return a.Membership(ctx, t, who)
	}
	if err != nil {
		return Membership{}, errUnreadable("accept membership", err)
	}
	return a.Membership(ctx, t, who)
}
