package console

import (
	"net/url"

	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// signInView is the content of the sign-in page.
type signInView struct {
	Return    string
	Providers []wire.Provider
}

// refusals returns messages for the reasons why a sign-in at a provider was refused, by their names in addresses.
func refusals() map[string]string {
	return map[string]string{
		"failed":     "The sign-in failed: begin again.",
		"no-account": "No account of a member belongs to this sign-in: ask for an invitation.",
		"link": "Your account has another way to sign in. Use it once, in this browser, to connect the provider " +
			"to your account.",
		"no-address": "The provider did not give this service a verified e-mail address of yours: ask the operator of the " +
			"service or of the provider.",
		"too-many":    "Too many attempts, try again later.",
		"unavailable": "The sign-in provider cannot be reached: try again later.",
	}
}

func (p *pages) showSignIn(r *page.Request) (any, error) {
	if r.Problem == "" {
		r.Problem = refusals()[r.Query("refused")]
	}
	return signInView{Return: r.ReturnPath(), Providers: r.Providers()}, nil
}

// signIn signs a user in with a password. If the account has a second factor, the user continues on its page.
func (p *pages) signIn(r *page.Request) (page.Outcome, error) {
	_, second, err := visitOf(r).Identity.SignIn(r.Context(), visitOf(r).person,
		identity.Credentials{Email: r.Value("email"), Password: r.Form.Get("password")})
	switch {
	case err != nil:
		return page.Outcome{}, err
	case second != nil:
		return page.GoTo(r.Address("/signin/second")+"?return="+url.QueryEscape(r.ReturnPath()), ""), nil
	}
	return page.GoTo(r.ReturnPath(), ""), nil
}

func (p *pages) showSecondFactor(r *page.Request) (any, error) {
	return signInView{Return: r.ReturnPath()}, nil
}

func (p *pages) useRecoveryCode(r *page.Request) (page.Outcome, error) {
	_, err := visitOf(r).Identity.UseRecoveryCode(r.Context(), visitOf(r).person, r.Value("code"))
	return page.GoTo(r.ReturnPath(), ""), err
}

func (p *pages) showSignOut(*page.Request) (any, error) { return nil, nil }

func (p *pages) signOut(r *page.Request) (page.Outcome, error) {
	err := visitOf(r).Identity.SignOut(r.Context(), visitOf(r).person)
	return page.GoTo(r.Address("/signin"), "signed-out"), err
}
