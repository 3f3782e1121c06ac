// Package platform implements the operator's calls: organizations with their log keys, clocks and witnesses, accounts
// of people who cannot sign in any more, snapshots of the store, and the status of the service.
//
// It hides from package identity, which mounts the calls, their bodies and the packages that do the work.
//
// Invariants:
//
//   - The caller has already checked the platform secret.
//   - Every change of an organization is a statement in its log, with the operator as principal.
//   - A secret appears only in the answer that shows it once, never in a log line.
package platform

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/backup"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/factor"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

// Calls implements the operator's calls. All fields are required.
type Calls struct {
	Provisioner *provision.Provisioner
	Orgs        *org.Orgs
	Clock       *clock.Guard
	Witnesses   Witnesses
	Reindex     Reindex
	Accounts    *account.Accounts
	Factors     *factor.Factors
	Snapshots   *backup.Snapshots
	Status      Status
}

// Call is one call; its path is relative to that of the platform.
type Call struct {
	Method  string
	Path    string
	Query   []string // names of the query parameters
	HasBody bool     // the request has a JSON body
	Handle  func(w http.ResponseWriter, r *http.Request, body edge.Body) error
}

// List returns all calls.
func (c *Calls) List() []Call {
	const organizations, organization = "/organizations", "/organizations/{organization}"
	return []Call{
		{"GET", organizations, []string{"after", "limit"}, false, c.listOrganizations},
		{"POST", organizations, nil, true, c.createOrganization},
		{"GET", organization, nil, false, c.answerOrganization},
		{"PATCH", organization, nil, true, c.changeOrganization},
		{"POST", organization + "/log-keys", nil, false, c.rotateLogKey},
		{"POST", organization + "/log-keys/retire", nil, false, c.retireLogKey},
		{"POST", organization + "/witnesses/ask", nil, false, c.askWitnesses},
		{"POST", organization + "/reindex", nil, false, c.reindexOrganization},
		{"POST", organization + "/clock", nil, true, c.correctClock},
		{"GET", "/status", nil, false, c.answerStatus},
		{"GET", organization + "/status", nil, false, c.answerOrganizationStatus},
		{"GET", "/clock", nil, false, c.answerClock},
		{"POST", "/clock", nil, true, c.acceptClock},
		{"POST", "/snapshots", nil, false, c.makeSnapshot},
		{"DELETE", "/snapshots/{snapshot}", nil, false, c.removeSnapshot},
		{"GET", "/accounts", []string{"email"}, false, c.findAccounts},
		{"DELETE", "/accounts/{account}/second-factors", nil, false, c.removeSecondFactors},
	}
}

// FindOrganization returns the organization that a path names by id or slug; no slug is a UUID.
func (c *Calls) FindOrganization(ctx context.Context, name string) (id.Tenant, error) {
	if organization, err := id.ParseOrganization(name); err == nil {
		return c.Orgs.ByID(ctx, organization)
	}
	return c.Orgs.BySlug(ctx, id.Slug(name))
}

func organizationOfPath(r *http.Request) string { return chi.URLParam(r, "organization") }

// write answers with a document unless err is set.
func write(w http.ResponseWriter, status int, body any, err error) error {
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, status, body)
}

// writeNoContent answers with 204 unless err is set.
func writeNoContent(w http.ResponseWriter, err error) error {
	if err == nil {
		edge.WriteNoContent(w)
	}
	return err
}

// decodeBody decodes the JSON body of a request into v.
func decodeBody(r *http.Request, bounds edge.Body, v any) error {
	body, err := edge.ReadBody(r, bounds)
	if err != nil {
		return err
	}
	return edge.DecodeStrict(body, v)
}
