package account

import (
	"context"
	"errors"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Owner returns the account of an address for a new organization, and creates it if there is none, as
// Ensure does. known reports whether a person may use the account already; then the organization can
// only offer a membership. An unproved account is taken over and is not known. The leftover of a failed
// call is not known to the same call again: an account that is in no organization, with the same password
// or likewise without one.
//
// Errors are those of Ensure, and fault.Conflict with code account_known for a password that is
// given for a known account.
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
			Message: "The account is known: send no admin_password, and the person accepts by signing in"}
	}
	return who, true, nil
}

// checkUnused reports whether an account is in no organization, not by an offer either, and
// password is the one that it has, "" for none.
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

// Accept makes an account a member where that was offered to it; a member stays one.
// fault.NotFound if nothing was offered, or if the membership is suspended; fault.Forbidden with
// code address_unproved for an unproved account, which an older program may have made an offer.
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
	if errors.Is(err, storage.ErrStale) { // another sign-in was quicker
		return a.Membership(ctx, t, who)
	}
	if err != nil {
		return Membership{}, errUnreadable("accept membership", err)
	}
	return a.Membership(ctx, t, who)
}
