package platform

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
)

func (c *Calls) findAccounts(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	found, err := c.FindAccounts(r.Context(), r.URL.Query().Get("email"))
	return write(w, http.StatusOK, found, err)
}

// FindAccounts lists the account of an email address.
func (c *Calls) FindAccounts(ctx context.Context, email string) (wire.FoundAccounts, error) {
	found := wire.FoundAccounts{Accounts: []wire.FoundAccount{}}
	if email == "" {
		return found, fault.New(fault.Invalid, "email is required")
	}
	who, err := c.Accounts.Find(ctx, email)
	if fault.Is(err, fault.NotFound) {
		return found, nil
	}
	if err != nil {
		return found, err
	}
	one, err := c.describeAccount(ctx, who)
	found.Accounts = append(found.Accounts, one)
	return found, err
}

func (c *Calls) describeAccount(ctx context.Context, who account.Account) (wire.FoundAccount, error) {
	factors, err := c.Factors.Summary(ctx, who.ID)
	if err != nil {
		return wire.FoundAccount{}, err
	}
	places, err := c.Accounts.Places(ctx, who.ID)
	if err != nil {
		return wire.FoundAccount{}, err
	}
	proof, err := c.Accounts.Proof(ctx, who.ID)
	if err != nil {
		return wire.FoundAccount{}, err
	}
	view := wire.FoundAccount{EmailProof: string(proof),
		ID: string(who.ID), Email: who.Email, DisplayName: who.DisplayName, CreatedAt: who.CreatedAt,
		HasPassword: who.HasPassword, Passkeys: len(factors.Passkeys), RecoveryCodes: factors.CodesLeft,
		Organizations: make([]wire.FoundPlace, len(places))}
	for i, m := range places {
		summary, err := c.Orgs.Summary(ctx, m.Tenant)
		if err != nil {
			return wire.FoundAccount{}, err
		}
		view.Organizations[i] = wire.FoundPlace{ID: summary.ID, Slug: summary.Slug, Role: string(m.Role), Offered: m.Offered,
			Suspended: m.Suspended}
	}
	return view, nil
}

func (c *Calls) removeSecondFactors(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	return writeNoContent(w, c.RemoveSecondFactors(r.Context(), chi.URLParam(r, "account")))
}

// RemoveSecondFactors removes all passkeys and recovery codes of an account whose person lost them. Its sessions end;
// its password stays.
func (c *Calls) RemoveSecondFactors(ctx context.Context, name string) error {
	return c.Factors.RemoveAll(ctx, account.ID(name))
}
