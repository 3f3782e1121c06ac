package operator

import (
	"net/http"
	"net/url"

	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

const accountCalls = "/v1/id/platform/accounts"

// accountsView is the content of the page that finds an account.
type accountsView struct {
	Email    string // address that was searched for; "" if none
	Accounts []wire.FoundAccount
}

func showAccounts(r *page.Request) (any, error) {
	v := accountsView{Email: r.Query("email")}
	if v.Email == "" {
		return &v, nil
	}
	var found wire.FoundAccounts
	err := r.Correctable(r.Read(accountCalls, url.Values{"email": {v.Email}}, &found))
	v.Accounts = found.Accounts
	return &v, err
}

// accountPage redirects to the account of a form.
func accountPage(r *page.Request, notice string) page.Outcome {
	return page.GoTo(r.Address(accountsPage)+"?"+url.Values{"email": {r.Value("email")}}.Encode(), notice)
}

func removeFactors(r *page.Request) (page.Outcome, error) {
	path := accountCalls + "/" + url.PathEscape(r.Value("account")) + "/second-factors"
	return accountPage(r, "factors-removed"), r.Change(http.MethodDelete, path, nil, nil)
}

func setPassword(r *page.Request) (page.Outcome, error) {
	body := map[string]string{"email": r.Value("email"), "password": r.Form.Get("password")}
	return accountPage(r, "password-given"), r.Change(http.MethodPost, accountCalls+"/password", body, nil)
}
