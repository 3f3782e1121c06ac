package console

import (
	"github.com/agentledger/agentledger/web/page"
)

func (p *pages) entryScreens() []page.Screen {
	signIn := []string{"signin.js", "passkey.js", "times.js"}
	links := []string{"token.js", "passkeyform.js", "passkey.js", "times.js"}
	return []page.Screen{
		{Pattern: "/signin", Query: []string{"return", "refused"},
			Views: p.views, Name: "signin", Title: "Sign in", Open: true, Show: p.showSignIn,
			Script: "signin.js", Modules: signIn, Forms: map[string]page.Form{"sign-in": p.signIn}},
		{Pattern: "/signin/second", Query: []string{"return"},
			Views: p.views, Name: "secondfactor", Title: "Second factor", Open: true,
			Show: p.showSecondFactor, Script: "signin.js", Modules: signIn,
			Forms: map[string]page.Form{"recovery-code": p.useRecoveryCode}},
		{Pattern: "/signout", Views: p.views, Name: "signout", Title: "Sign out", Open: true, Show: p.showSignOut,
			Forms: map[string]page.Form{"": p.signOut}},
		{Pattern: "/setup", Views: p.views, Name: "setup", Title: "Set up the service", Open: true, Show: p.showToken,
			Script: "token.js", Modules: links, Forms: map[string]page.Form{"setup": p.setUp}},
		{Pattern: "/forgot-password", Views: p.views, Name: "forgotpassword", Title: "Forgotten password", Open: true,
			Show: p.showNothing, Forms: map[string]page.Form{"ask": p.askReset}},
		{Pattern: "/reset-password", Views: p.views, Name: "resetpassword", Title: "A new password", Open: true,
			Show: p.showToken, Script: "token.js", Modules: links,
			Forms: map[string]page.Form{"reset": p.resetPassword}},
		{Pattern: "/invitation", Views: p.views, Name: "invitation", Title: "Invitation", Open: true,
			Show: p.showInvitation, Script: "token.js", Modules: links,
			Forms: map[string]page.Form{"open": p.openInvitation, "accept": p.acceptInvitation}},
		{Pattern: "/confirm-email", Views: p.views, Name: "confirmemail", Title: "A new e-mail address",
			Show: p.showConfirmation, Script: "token.js", Modules: links,
			Forms: map[string]page.Form{"confirm": p.confirmEmail}},
	}
}

func (p *pages) showNothing(*page.Request) (any, error) { return nil, nil }

// tokenView is the content of a page that needs the token of a link.
type tokenView struct{ Token string }

func (p *pages) showToken(r *page.Request) (any, error) { return tokenView{r.Value("token")}, nil }
