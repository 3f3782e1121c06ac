package operator

import (
	"net/http"
	"net/url"

	"github.com/agentledger/agentledger/web/screen"
)

const accountCalls = "/v1/id/platform/accounts"

// foundAccount is an account with its organizations.
type foundAccount struct {
	ID            string `json:"account_id"`
	Email         string `json:"email"`
	DisplayName   string `json:"display_name"`
	CreatedAt     string `json:"created_at"`
	EmailProof    string `json:"email_proof"`
	HasPassword   bool   `json:"has_password"`
	Passkeys      int    `json:"passkeys"`
	RecoveryCodes int    `json:"recovery_codes_left"`
	Organizations []struct {
		Slug      string `json:"slug"`
		Role      string `json:"role"`
		Offered   bool   `json:"offered"`
		Suspended bool   `json:"suspended"`
	} `json:"organizations"`
}

// accountsView is the content of the page that finds an account.
type accountsView struct {
	Email    string // that was asked for, "" for none
	Accounts []foundAccount
}

func showAccounts(r *screen.Request) (any, error) {
	v := accountsView{Email: r.Query("email")}
	if v.Email == "" {
		return &v, nil
	}
	var found struct {
		Accounts []foundAccount `json:"accounts"`
	}
	err := r.ReadList(accountCalls, url.Values{"email": {v.Email}}, &found)
	v.Accounts = found.Accounts
	return &v, err
}

// accountPage leads to the account of a form.
func accountPage(r *screen.Request, notice string) screen.Outcome {
	return screen.GoTo(r.Address(accountsPage)+"?"+url.Values{"email": {r.Value("email")}}.Encode(), notice)
}

func removeFactors(r *screen.Request) (screen.Outcome, error) {
	path := accountCalls + "/" + url.PathEscape(r.Value("account")) + "/second-factors"
	return accountPage(r, "factors-removed"), r.Change(http.MethodDelete, path, nil, nil)
}

func setPassword(r *screen.Request) (screen.Outcome, error) {
	body := map[string]string{"email": r.Value("email"), "password": r.Form.Get("password")}
	return accountPage(r, "password-given"), r.Change(http.MethodPost, accountCalls+"/password", body, nil)
}
