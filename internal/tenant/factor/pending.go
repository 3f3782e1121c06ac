package factor

import (
	"context"
	"errors"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// pending is a sign-in that lacks its second factor. The browser stores it in a sealed cookie, which is not a
// session: it can only be used to submit a recovery code.
type pending struct {
	Account      account.ID      `json:"account"`
	Generation   uint64          `json:"generation"`
	Organization id.Organization `json:"organization,omitzero"`
	Ends         id.Instant      `json:"ends"`
}

// BeginSecond returns the cookie of a sign-in with a correct password. organization is the requested organization.
func (f *Factors) BeginSecond(who account.Account, organization id.Organization) (cookie string, err error) {
	return seal.Cookie(f.Sealer, pendingContext, pending{Account: who.ID, Generation: who.Generation(),
		Organization: organization, Ends: id.InstantOf(f.Clock().Add(Life))})
}

// FindSecond returns the account and the requested organization of a cookie from BeginSecond. It returns
// fault.Unauthorized if the cookie has expired or the account's factors have changed.
func (f *Factors) FindSecond(ctx context.Context, cookie string) (account.Account, id.Organization, error) {
	var p pending
	err := seal.OpenCookie(f.Sealer, pendingContext, cookie, &p)
	if err == nil && f.currentTime() >= p.Ends {
		err = errors.New("the sign-in took too long")
	}
	if err != nil {
		return account.Account{}, id.Organization{}, errNoSecond(err)
	}
	who, err := f.Accounts.ByID(ctx, p.Account)
	if fault.Is(err, fault.NotFound) || err == nil && who.Generation() != p.Generation {
		err = errNoSecond(errors.New("the account was changed"))
	}
	return who, p.Organization, err
}

func errNoSecond(cause error) error {
	return &fault.Error{Kind: fault.Unauthorized, Code: "no_sign_in",
		Message: "The sign-in has expired: start again", Err: cause}
}
