package console

import (
	"cmp"
	"context"
	"net/http"
	"strconv"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/verify"
	"github.com/agentledger/agentledger/web/page"
)

// Options configure Mount. All are required.
type Options struct {
	Edge     *edge.Edge
	Kit      *page.Kit
	Control  *admission.Control
	Console  *api.Server
	Identity *identity.Server
	// LogKeys returns the keys of an organization's current log, latest last. To is at least tlog.MaxSize for a key
	// that signs.
	LogKeys func(ctx context.Context, t id.Tenant) ([]verify.LogKey, error)
}

// Mount adds the pages to r, and a page for unknown addresses.
func Mount(r *edge.Router, o Options) {
	page.New(page.Options{Edge: o.Edge, Kit: o.Kit, Control: o.Control, Access: page.Access{
		Admit: o.admit, Read: readPage, Change: o.change, StepUp: o.stepUp,
		Links: memberLinks(), Waiting: countVotes, NameOf: nameOf,
		Providers: func() []wire.Provider { return o.Identity.ListProviders().Providers },
	}}).Mount(r, Screens(o.Kit))
}

// visit is the reader of a page, as the caller of functions. The session is looked up once per page.
type visit struct {
	*Options
	person *identity.Caller
	caller *api.Caller // nil for a stranger
	named  known       // names that pages of this visit show
	votes  *int        // see countVotes; nil if they are not counted yet
}

// visitOf returns the visit of a request.
func visitOf(r *page.Request) *visit { return r.Visit.(*visit) }

// admit finds the session of a request. A page for strangers needs no session. If another node owns the organization,
// that node serves the page. After a form that began or ended a session, admit is called again.
func (o *Options) admit(r *page.Request) error {
	v, again := r.Visit.(*visit)
	if !again {
		v = &visit{Options: o, person: o.Identity.NewCaller(r.Request, r.SetCookie)}
	}
	r.Visit, r.Person, r.Reader, v.caller = v, nil, "", nil
	if r.IsShared() {
		return nil
	}
	shown, err := o.Identity.ShowSession(r.Context(), v.person)
	if err != nil {
		if r.IsOpen() && edge.StatusOf(err) < http.StatusInternalServerError {
			return nil
		}
		return err
	}
	v.caller = api.NewCaller(v.person.Who, r.UserAgent())
	r.Person, r.Reader = &page.Person{SignedIn: *shown}, cmp.Or(shown.Account.DisplayName, shown.Account.Email)
	if r.IsConsole() {
		return o.Console.CheckOwner(r.Context(), v.caller)
	}
	return nil
}

// readPage calls show as one call of the reader's organization. If the organization has moved to another node, that
// node serves the page, and also the form if there is one: its change was refused or not made yet.
func readPage(r *page.Request, show func() error) error {
	v := visitOf(r)
	if v.caller == nil || !r.IsConsole() {
		return show()
	}
	return v.Edge.CheckLost(v.Console.ServeRead(r.Request, v.caller, show), v.caller.Who.Tenant, nil)
}

// change calls a form. The form of an organization's page is one change in the load control. If the organization has
// moved to another node, that node serves the form, because nothing was changed here.
func (o *Options) change(r *page.Request, form func() error) error {
	v := visitOf(r)
	if r.IsConsole() {
		return v.changeOrganization(r, form)
	}
	return v.changePerson(r, form)
}

// changeOrganization calls change as one change of the reader's organization.
func (v *visit) changeOrganization(r *page.Request, change func() error) error {
	if err := v.Console.CheckOrigin(r.Request); err != nil {
		return err
	}
	err := v.Console.ServeChange(r.Request, v.caller, r.MaxSent(), inContext(r, change))
	return v.Edge.CheckLost(err, v.caller.Who.Tenant, nil)
}

// changePerson calls change, which concerns an account.
func (v *visit) changePerson(r *page.Request, change func() error) error {
	if err := v.Identity.CheckOrigin(r.Request); err != nil {
		return err
	}
	return v.Identity.ServeChange(r.Context(), v.person, inContext(r, change))
}

// inContext returns a function that calls change, for which the request has the given context.
func inContext(r *page.Request, change func() error) func(context.Context) error {
	return func(ctx context.Context) error {
		r.Request = r.WithContext(ctx)
		return change()
	}
}

// stepUp proves the presence of the user by a password. The session continues under a new token.
func (o *Options) stepUp(r *page.Request, password string) error {
	v := visitOf(r)
	err := v.changePerson(r, func() error {
		_, err := v.Identity.StepUp(r.Context(), v.person, identity.Proof{Password: password})
		return err
	})
	if err == nil {
		v.caller = api.NewCaller(v.person.Who, r.UserAgent())
	}
	return err
}

// isMissing reports whether an error means that the object does not exist.
func isMissing(err error) bool { return fault.Is(err, fault.NotFound) }

// memberLinks returns the links to the pages of an organization.
func memberLinks() []page.Link {
	return []page.Link{
		{Title: "Overview", URL: "/console", Icon: "overview", Tabs: []page.Link{
			{Title: "Now", URL: "/console"},
			{Title: "Statistics", URL: "/console/stats"},
		}},
		{Title: "Approvals", URL: "/console/approvals", Icon: "approvals", Counts: "wait for your vote"},
		{Title: "Activity", URL: activityPage, Icon: "activity", Tabs: []page.Link{
			{Title: "Acts", URL: activityPage, Below: actsPage},
			{Title: "All events", URL: "/console/events"},
			{Title: "Traces", URL: "/console/traces"},
			{Title: "Runs", URL: "/console/runs"},
			{Title: "By people", URL: "/console/audit", Needs: "read the audit list"},
		}},
		{Title: "Evidence", URL: "/console/evidence", Icon: "evidence", Tabs: []page.Link{
			{Title: "Packs", URL: "/console/evidence"},
			{Title: "Shared views", URL: sharesPage, Needs: "share views"},
			{Title: "Coverage", URL: coveragePage, Needs: "read payloads"},
		}},
		{Title: "Policies", URL: "/console/policies", Icon: "policies", Group: "Control"},
		{Title: "Agents", URL: "/console/agents", Icon: "agents", Tabs: []page.Link{
			{Title: "All", URL: "/console/agents"},
			{Title: "Ingest keys", URL: "/console/ingest-keys"},
		}},
		{Title: "People", URL: "/console/members", Icon: "people", Group: "Organization"},
		{Title: "Settings", URL: "/console/settings", Icon: "settings", Tabs: []page.Link{
			{Title: "Organization", URL: "/console/settings"},
			{Title: "Approvals", URL: "/console/settings/approvals"},
			{Title: "Sign-in", URL: "/console/settings/sign-in"},
			{Title: "Retention", URL: "/console/settings/retention"},
			{Title: "Erasures", URL: "/console/erasures"},
			{Title: "Columns", URL: "/console/settings/columns"},
			{Title: "Tool keys", URL: toolKeysPage},
			{Title: "Witnesses", URL: "/console/settings/witnesses"},
			{Title: "Webhooks", URL: "/console/webhooks"},
			{Title: "Stream", URL: "/console/settings/stream-export"},
			{Title: "Tokens", URL: "/console/settings/tokens"},
			{Title: "Audit", URL: "/console/audit", Needs: "read the audit list"},
		}},
		{Title: "Your account", URL: "/account", Hidden: true, Tabs: []page.Link{
			{Title: "Profile", URL: "/account"},
			{Title: "Passkeys and codes", URL: "/account/factors"},
			{Title: "Sessions", URL: "/account/sessions"},
		}},
	}
}

// maxCounted is the maximum number of votes that the navigation counts.
const maxCounted = 25

// countVotes returns how many approvals wait for the reader's vote, or "" if none does or they cannot be counted.
func countVotes(r *page.Request) string {
	if !r.IsConsole() || !r.Person.May("vote") { // pages of the account read nothing of an organization
		return ""
	}
	n, err := visitOf(r).countVotes(r)
	if err != nil || n == 0 {
		return ""
	}
	return votesText(n)
}

// countVotes returns how many approvals wait for the reader's vote, at most maxCounted+1. They are counted once.
func (v *visit) countVotes(r *page.Request) (int, error) {
	if v.votes == nil {
		n, err := v.Console.CountVotes(r.Context(), v.caller, maxCounted+1)
		if err != nil {
			return 0, err
		}
		v.votes = &n
	}
	return *v.votes, nil
}

func votesText(n int) string {
	if n > maxCounted {
		return strconv.Itoa(maxCounted) + "+"
	}
	return strconv.Itoa(n)
}
