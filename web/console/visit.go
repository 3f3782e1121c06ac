package console

import (
	"context"
	"net/http"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/verify"
	"github.com/agentledger/agentledger/web/page"
)

// Options configure Mount. All are required.
type Options struct {
	Edge     *edge.Edge
	Calls    http.Handler // the JSON interface, through which forms make changes
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
	page.New(page.Options{Edge: o.Edge, Calls: o.Calls, Kit: o.Kit, Control: o.Control, Access: page.Access{
		Admit: o.admit, Read: readPage, Change: o.change, StepUp: o.stepUp, Links: memberLinks(),
		Providers: func() []wire.Provider { return o.Identity.ListProviders().Providers },
	}}).Mount(r, Screens(o.Kit))
}

// visit is the session of a page request, with the calls of the interface. The session is read once per page.
type visit struct {
	*Options
	caller  *api.Caller      // nil for a stranger
	session *account.Session // nil for a stranger
}

// visitOf returns the visit of a request.
func visitOf(r *page.Request) *visit { return r.Visit.(*visit) }

// admit finds the session of a request. A page for strangers needs no session. If another node owns the organization,
// that node serves the page.
func (o *Options) admit(r *page.Request) error {
	v := &visit{Options: o}
	r.Visit, r.Person, r.Reader = v, nil, ""
	session, err := o.Identity.FindSession(r.Request)
	var shown *wire.SignedIn
	if err == nil {
		shown, err = o.Identity.ShowSession(r.Context(), session)
	}
	if err != nil {
		if r.IsOpen() && edge.StatusOf(err) < http.StatusInternalServerError {
			return nil
		}
		return err
	}
	v.session, v.caller = session, api.NewCaller(session, r.UserAgent())
	r.Person, r.Reader = &page.Person{SignedIn: *shown}, shown.Account.Email+" · "+shown.Organization.Name
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
	err := v.Console.ServeRead(r.Request, v.caller, show)
	if sent := r.Sent(); sent != nil {
		return v.Edge.CheckLost(err, v.session.Tenant, sent)
	}
	return err
}

// change calls a form. The changes of an organization's page are one change in the load control. If the organization
// has moved to another node, that node serves the form, because nothing was changed here.
func (o *Options) change(r *page.Request, form func() error) error {
	if !r.IsConsole() {
		return form()
	}
	return visitOf(r).changeOrganization(r, form)
}

// changeOrganization calls change as one change of the reader's organization.
func (v *visit) changeOrganization(r *page.Request, change func() error) error {
	if err := v.Console.CheckOrigin(r.Request); err != nil {
		return err
	}
	err := v.Console.ServeChange(r.Request, v.caller, r.MaxSent(), func(ctx context.Context) error {
		r.Request = r.WithContext(ctx)
		return change()
	})
	return v.Edge.CheckLost(err, v.session.Tenant, r.Sent())
}

// stepUp proves the presence of the user by a password. The session continues under a new token.
func (o *Options) stepUp(r *page.Request, password string) error {
	err := r.Change(http.MethodPost, "/v1/id/auth/step-up", map[string]string{"password": password}, nil)
	if err != nil {
		return err
	}
	return o.admit(r)
}

// isMissing reports whether an error means that the object does not exist.
func isMissing(err error) bool { return fault.Is(err, fault.NotFound) }

// memberLinks returns the links to the pages of an organization.
func memberLinks() []page.Link {
	return []page.Link{
		{Title: "Overview", URL: "/console"},
		{Title: "Approvals", URL: "/console/approvals"},
		{Title: "Events", URL: "/console/events"},
		{Title: "Traces", URL: "/console/traces"},
		{Title: "Runs", URL: "/console/runs"},
		{Title: "Statistics", URL: "/console/stats"},
		{Title: "Policies", URL: "/console/policies"},
		{Title: "Agents", URL: "/console/agents"},
		{Title: "Ingest keys", URL: "/console/ingest-keys"},
		{Title: "Members", URL: "/console/members"},
		{Title: "Webhooks", URL: "/console/webhooks"},
		{Title: "Evidence", URL: "/console/evidence"},
		{Title: "Audit", URL: "/console/audit"},
		{Title: "Erasures", URL: "/console/erasures"},
		{Title: "Settings", URL: "/console/settings"},
		{Title: "Account", URL: "/account"},
	}
}
