package platform

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
)

// findAccounts lists the account of an email address.
func (c *Calls) findAccounts(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	email := r.URL.Query().Get("email")
	if email == "" {
		return fault.New(fault.Invalid, "email is required")
	}
	found := []wire.FoundAccount{}
	who, err := c.Accounts.Find(r.Context(), email)
	if err == nil {
		var one wire.FoundAccount
		one, err = c.describeAccount(r, who)
		found = append(found, one)
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, wire.FoundAccounts{Accounts: found})
}

func (c *Calls) describeAccount(r *http.Request, who account.Account) (wire.FoundAccount, error) {
	factors, err := c.Factors.Summary(r.Context(), who.ID)
	if err != nil {
		return wire.FoundAccount{}, err
	}
	places, err := c.Accounts.Places(r.Context(), who.ID)
	if err != nil {
		return wire.FoundAccount{}, err
	}
	proof, err := c.Accounts.Proof(r.Context(), who.ID)
	if err != nil {
		return wire.FoundAccount{}, err
	}
	view := wire.FoundAccount{EmailProof: string(proof),
		ID: string(who.ID), Email: who.Email, DisplayName: who.DisplayName, CreatedAt: who.CreatedAt,
		HasPassword: who.HasPassword, Passkeys: len(factors.Passkeys), RecoveryCodes: factors.CodesLeft,
		Organizations: make([]wire.FoundPlace, len(places))}
	for i, m := range places {
		summary, err := c.Orgs.Summary(r.Context(), m.Tenant)
		if err != nil {
			return wire.FoundAccount{}, err
		}
		view.Organizations[i] = wire.FoundPlace{ID: summary.ID, Slug: summary.Slug, Role: string(m.Role), Offered: m.Offered,
			Suspended: m.Suspended}
	}
	return view, nil
}

// removeSecondFactors removes all passkeys and recovery codes of an account whose person lost them. Its sessions end;
// its password stays.
func (c *Calls) removeSecondFactors(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	err := c.Factors.RemoveAll(r.Context(), account.ID(chi.URLParam(r, "account")))
	if err != nil {
		return err
	}
	edge.WriteNoContent(w)
	return nil
}
