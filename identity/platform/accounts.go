package platform

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// foundAccount is an account as the operator sees it.
type foundAccount struct {
	AccountID   account.ID `json:"account_id"`
	Email       string     `json:"email"`
	DisplayName string     `json:"display_name"`
	CreatedAt   id.Instant `json:"created_at"`

	EmailProof account.Proof `json:"email_proof"`

	HasPassword bool         `json:"has_password"`
	Passkeys    int          `json:"passkeys"`
	CodesLeft   int          `json:"recovery_codes_left"`
	Places      []foundPlace `json:"organizations"`
}

type foundPlace struct {
	OrganizationID id.Organization `json:"organization_id"`
	Slug           id.Slug         `json:"slug"`
	Role           account.Role    `json:"role"`
	Offered        bool            `json:"offered,omitzero"`
	Suspended      bool            `json:"suspended,omitzero"`
}

// findAccounts lists the account of an address for the operator.
func (c *Calls) findAccounts(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	email := r.URL.Query().Get("email")
	if email == "" {
		return fault.New(fault.Invalid, "email is required")
	}
	found := []foundAccount{}
	who, err := c.Accounts.Find(r.Context(), email)
	if err == nil {
		var one foundAccount
		one, err = c.describeAccount(r, who)
		found = append(found, one)
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, struct {
		Accounts []foundAccount `json:"accounts"`
		Next     *string        `json:"next"` // always null: an address has one account
	}{found, nil})
}

func (c *Calls) describeAccount(r *http.Request, who account.Account) (foundAccount, error) {
	factors, err := c.Factors.Summary(r.Context(), who.ID)
	if err != nil {
		return foundAccount{}, err
	}
	places, err := c.Accounts.Places(r.Context(), who.ID)
	if err != nil {
		return foundAccount{}, err
	}
	proof, err := c.Accounts.Proof(r.Context(), who.ID)
	if err != nil {
		return foundAccount{}, err
	}
	view := foundAccount{EmailProof: proof,
		AccountID: who.ID, Email: who.Email, DisplayName: who.DisplayName, CreatedAt: who.CreatedAt,
		HasPassword: who.HasPassword, Passkeys: len(factors.Passkeys), CodesLeft: factors.CodesLeft,
		Places: make([]foundPlace, len(places))}
	for i, m := range places {
		summary, err := c.Orgs.Summary(r.Context(), m.Tenant)
		if err != nil {
			return foundAccount{}, err
		}
		view.Places[i] = foundPlace{OrganizationID: summary.ID, Slug: summary.Slug, Role: m.Role, Offered: m.Offered,
			Suspended: m.Suspended}
	}
	return view, nil
}

// removeSecondFactors takes all passkeys and recovery codes from an account, because a
// person lost them. Its sessions end, and its password stays as it is.
func (c *Calls) removeSecondFactors(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	err := c.Factors.RemoveAll(r.Context(), account.ID(chi.URLParam(r, "account")))
	if err != nil {
		return err
	}
	edge.WriteNoContent(w)
	return nil
}
