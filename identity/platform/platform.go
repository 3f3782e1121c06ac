// Package platform answers the calls of the operator: organizations, their log keys, clocks and
// witnesses, the accounts of people that lost a way in, snapshots of the store, and the state of the service.
//
// Invariants:
//
//   - The surface that mounts these calls has checked the platform secret before.
//   - A change of an organization is a statement in its log, with the operator as principal.
//   - Secrets are in the answer that shows them once and in no log line.
package platform

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/factor"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
)

// Provisioner makes organizations (package provision).
type Provisioner interface {
	CreateOrganization(ctx context.Context, r provision.Request) (*provision.Result, error)
}

// Organizations finds and changes organizations (package org).
type Organizations interface {
	ByID(ctx context.Context, organization id.Organization) (id.Tenant, error)
	Summary(ctx context.Context, t id.Tenant) (org.Summary, error)
	ListOrganizations(ctx context.Context, after id.Slug, limit int) ([]org.Listed, error)
	ListOrganization(ctx context.Context, t id.Tenant) (org.Listed, error)
	CurrentSettings(ctx context.Context, t id.Tenant) (*org.Settings, error)
	Change(ctx context.Context, t id.Tenant, principal string, p org.Patch) (*org.Settings, error)
}

// LogKeys changes the keys and the clock of organizations' logs (package org).
type LogKeys interface {
	BySlug(ctx context.Context, slug id.Slug) (id.Tenant, error)
	RotateLogKey(ctx context.Context, t id.Tenant, principal string) (log.LogKey, error)
	RetireLogKey(ctx context.Context, t id.Tenant, principal string) (log.LogKey, error)
	CorrectClock(ctx context.Context, t id.Tenant, principal, reason string) (org.Corrected, error)
}

// Clock is the clock of the service (package clock).
type Clock interface {
	Status() clock.Status
	Accept() clock.Status
}

// Accounts finds accounts and their organizations (package account).
type Accounts interface {
	Find(ctx context.Context, email string) (account.Account, error)
	Places(ctx context.Context, who account.ID) ([]account.Membership, error)
	Proof(ctx context.Context, who account.ID) (account.Proof, error)
}

// Factors counts and removes the second factors of accounts (package factor).
type Factors interface {
	Summary(ctx context.Context, who account.ID) (factor.Summary, error)
	RemoveAll(ctx context.Context, who account.ID) error
}

// Calls is the operator's calls. All fields are required.
type Calls struct {
	Provisioner   Provisioner
	Organizations Organizations
	LogKeys       LogKeys
	Clock         Clock
	Witnesses     Witnesses
	Reindex       Reindex
	Accounts      Accounts
	Factors       Factors
	Snapshots     Snapshots
	Status        Status
}

// Call is one call, below the path of the platform.
type Call struct {
	Method  string
	Path    string
	Query   []string // names of its query parameters
	HasBody bool     // JSON
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

// decodeBody reads the JSON body of a request into v.
func decodeBody(r *http.Request, bounds edge.Body, v any) error {
	body, err := edge.ReadBody(r, bounds)
	if err != nil {
		return err
	}
	return edge.DecodeStrict(body, v)
}
