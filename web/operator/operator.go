// Package operator serves the pages of the service's operator on the identity listener: organizations, accounts whose users
// lost access, and the state of the service.
//
// Invariants:
//
//   - A page calls the functions of the platform calls. Like a call, it checks the secret, with which the operator signed
//     in.
//   - The secret is in memory while the session lasts, and never in a page, a cookie or a log line. A wrong secret counts
//     as a failed platform call, so guesses are slowed down in the same way.
//   - A session ends after an hour, at sign-out, and with the process. There are at most 100.
//   - The cookie is HttpOnly and SameSite=Strict. A request from a page of another origin is refused, even if only the
//     port differs.
//   - The secret of a new organization is shown once, in the answer to the form that created it.
package operator

import (
	"context"
	"embed"
	"net/http"
	"runtime"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/web/page"
)

//go:embed templates
var templates embed.FS

const (
	home              = "/operator"
	newPage           = home + "/new"
	accountsPage      = home + "/accounts"
	organizationsPage = home + "/organizations"
	servicePage       = home + "/service"
)

// Options configure Mount. All but Directory and Passed are required.
type Options struct {
	Edge     *edge.Edge
	Identity *identity.Server // the functions of the platform calls

	// Passed reports whether a request comes from another node, which has admitted the operator. If nil, none does.
	Passed func(context.Context) bool

	PublicURL string // of the main listener
	Directory string // slug of the organization whose log is the directory; "" if none
}

// pages serves the pages.
type pages struct {
	Options
	views    *page.Views
	sessions *sessions
}

// Mount adds the pages to r. They are at the root of the listener, because the path of the public URL belongs to the main
// listener. Load on the main listener does not lock the operator out.
func Mount(r *edge.Router, o Options) {
	kit := page.NewKit("")
	kit.Public = o.PublicURL
	kit.Places = page.Places{Home: home, Inside: home, SignIn: signInPage, SignOut: signOutPage}
	p := &pages{Options: o, sessions: newSessions(time.Now), views: kit.Parse(templates, []string{"report"}, []string{"signin",
		"signout", "organizations", "new", "founded", "organization", "logkey", "accounts", "service"})}
	links := []page.Link{{Title: "Service", URL: home, Icon: "service", Group: "This service", Tabs: []page.Link{
		{Title: "Organizations", URL: home}, {Title: "Status", URL: servicePage}}},
		{Title: "Accounts", URL: accountsPage, Icon: "people"}}
	page.New(page.Options{Edge: o.Edge, Kit: kit, Control: admission.New(runtime.GOMAXPROCS(0)),
		Access: page.Access{Admit: p.admit, Change: p.change, Links: links}}).Mount(r, p.listScreens())
	quiet := *o.Edge
	quiet.Quiet = true
	var table edge.Table[edge.Handler]
	table.Add(edge.GetAndHead, "/assets/{tree}/*", edge.Permission{}, edge.Body{},
		func(w http.ResponseWriter, q *http.Request) error {
			file, err := kit.Assets.Answer(q, chi.URLParam(q, "tree"), chi.URLParam(q, "*"))
			if err == nil {
				file.WriteTo(w, q)
			}
			return err
		})
	files := edge.PlainSurface(&quiet)
	files.Unlisted = true
	edge.Mount(r, files, table)
}

func (p *pages) listScreens() []page.Screen {
	return []page.Screen{
		{Pattern: signInPage, Query: []string{"return"},
			Views: p.views, Name: "signin", Title: "The operator's pages", Open: true,
			Show: showSignIn, Forms: map[string]page.Form{"sign-in": p.signIn}},
		{Pattern: signOutPage, Views: p.views, Name: "signout", Title: "Sign out", Open: true, Show: showNothing,
			Forms: map[string]page.Form{"": p.signOut}},
		{Pattern: home, Query: []string{"after"},
			Views: p.views, Name: "organizations", Title: "Organizations", Show: p.showOrganizations},
		{Pattern: newPage, Views: p.views, Name: "new", Title: "A new organization",
			Show: showNewOrganization, Forms: map[string]page.Form{"found": p.foundOrganization}},
		{Pattern: organizationsPage + "/{organization}", Views: p.views, Name: "organization",
			Show: p.showOrganization, Forms: map[string]page.Form{"plan": p.changePlan, "switch-on": p.switchOn,
				"switch-off": p.switchOff, "sign-in": p.freeSignIn, "new-key": p.rotateKey, "retire-key": p.retireKey,
				"ask": p.askWitnesses, "reindex": p.reindex, "clock": p.correctClock}},
		{Pattern: accountsPage, Query: []string{"email"},
			Views: p.views, Name: "accounts", Title: "Accounts", Show: p.showAccounts,
			Forms: map[string]page.Form{"remove-factors": p.removeFactors, "set-password": p.setPassword}},
		{Pattern: servicePage, Views: p.views, Name: "service", Title: "Status", Show: p.showService,
			Forms: map[string]page.Form{"accept-clock": p.acceptClock}},
	}
}

func showNothing(*page.Request) (any, error) { return nil, nil }
