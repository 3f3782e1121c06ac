package console

import (
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/web/page"
)

// askReset requests a link to set a new password. The page is the same for every address.
func (p *pages) askReset(r *page.Request) (page.Outcome, error) {
	err := visitOf(r).Identity.ForgotPassword(r.Context(), visitOf(r).person, r.Value("email"))
	return page.GoTo(r.Address("/forgot-password"), "reset-asked"), err
}

// resetPassword sets a new password. The user then signs in with it.
func (p *pages) resetPassword(r *page.Request) (page.Outcome, error) {
	err := visitOf(r).Identity.ResetPassword(r.Context(), visitOf(r).person,
		identity.PasswordReset{Token: r.Value("token"), Password: r.Form.Get("password")})
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
	_, err := visitOf(r).Identity.ConfirmEmail(r.Context(), visitOf(r).person,
		identity.EmailConfirmation{Token: r.Value("token"), Password: r.Form.Get("password")})
	return page.GoTo(r.Address("/account"), "email-changed"), err
}
