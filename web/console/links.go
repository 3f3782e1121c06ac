package console

import (
	"net/http"

	"github.com/agentledger/agentledger/web/page"
)

// askReset requests a link to set a new password. The page is the same for every address.
func (p *pages) askReset(r *page.Request) (page.Outcome, error) {
	err := r.Change(http.MethodPost, "/v1/id/auth/forgot-password", map[string]string{"email": r.Value("email")}, nil)
	return page.GoTo(r.Address("/forgot-password"), "reset-asked"), err
}

// resetPassword sets a new password. The user then signs in with it.
func (p *pages) resetPassword(r *page.Request) (page.Outcome, error) {
	err := r.Change(http.MethodPost, "/v1/id/auth/reset-password",
		map[string]string{"token": r.Value("token"), "password": r.Form.Get("password")}, nil)
	return page.GoTo(r.Address("/signin"), "password-set"), err
}

// confirmView is the content of the page that confirms an address.
type confirmView struct {
	Token       string
	NewPassword bool // the account is taken over, because its address was never verified
}

func (p *pages) showConfirmation(r *page.Request) (any, error) {
	return confirmView{Token: r.Value("token"), NewPassword: !r.Person.Account.EmailProved}, nil
}

// confirmEmail changes the account's address to the one that the link was mailed to.
func (p *pages) confirmEmail(r *page.Request) (page.Outcome, error) {
	body := struct {
		Token    string `json:"token"`
		Password string `json:"password,omitzero"`
	}{r.Value("token"), r.Form.Get("password")}
	err := r.Change(http.MethodPost, "/v1/id/account/email/confirm", body, nil)
	return page.GoTo(r.Address("/account"), "email-changed"), err
}
