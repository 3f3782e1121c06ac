package operator

import (
	"net/url"

	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// accountsView is the content of the page that finds an account.
type accountsView struct {
	Email    string // address that was searched for; "" if none
	Accounts []wire.FoundAccount
}

func (p *pages) showAccounts(r *page.Request) (any, error) {
	v := accountsView{Email: r.Query("email")}
	if v.Email == "" {
		return &v, nil
	}
	found, err := p.Identity.Operator.FindAccounts(r.Context(), v.Email)
	v.Accounts = found.Accounts
	return &v, r.Correctable(err)
}

// accountPage redirects to the account of a form.
func accountPage(r *page.Request, notice string) page.Outcome {
	return page.GoTo(r.Address(accountsPage)+"?"+url.Values{"email": {r.Value("email")}}.Encode(), notice)
}

func (p *pages) removeFactors(r *page.Request) (page.Outcome, error) {
	return accountPage(r, "factors-removed"),
		p.Identity.Operator.RemoveSecondFactors(r.Context(), r.Value("account"))
}

func (p *pages) setPassword(r *page.Request) (page.Outcome, error) {
	return accountPage(r, "password-given"),
		p.Identity.SetPassword(r.Context(), r.Value("email"), r.Form.Get("password"))
}
