// Package provision creates organizations that are ready to use: with a ledger and its log key, a system key, an
// owner, a first agent with its key, and a first ingest key. It also sets up an empty service with its first
// organization (Setup). Callers see one operation that either succeeds or leaves nothing behind that a reader could
// see.
//
// Invariants:
//
//   - All records of the organization are committed together with its empty ledger, in one durable step. Before it
//     there are only claims, which readers never see.
//   - A call that failed before that step can be repeated with the same names. Of several calls for one name, at most
//     one succeeds.
//   - Nothing is written to the new log: its first event gets number 1.
//   - The only members are an account that is created with the organization, and accounts that accept an offer by
//     signing in.
//   - The private key and the ingest key are in the result and nowhere else.
package provision

import (
	"context"
	"errors"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/listener"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/password"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Provisioner creates organizations. All fields except NewTenant are required. Its methods may be called concurrently.
type Provisioner struct {
	// NewTenant returns a random handle for an organization that this process will own. Default: id.NewTenant.
	NewTenant func() (id.Tenant, error)

	Ledgers       *log.Ledgers
	Organizations *org.Orgs
	Agents        *agent.Agents
	Accounts      *account.Accounts
	Keyring       *seal.Keyring // seals the system key
	Host          Host
}

// Request describes a new organization.
type Request struct {
	Name         string
	Slug         id.Slug
	Plan         string          // if "", org.DefaultPlan
	Organization id.Organization // if zero, a random one
	Disclosure   id.Disclosure   // if 0, record

	// Owner. An existing account is offered the ownership, which it accepts by signing in. AdminPassword must then be
	// empty; the account keeps its password, if it has one. Otherwise an account is created. If AdminPassword is
	// empty, the account cannot sign in until it gets a password (account.SetPassword).
	AdminEmail    string
	AdminPassword string

	// Owner is an account that creates the organization for itself, instead of AdminEmail.
	Owner account.ID
}

// Result is a new organization. Agent and Token contain secrets that are shown to the caller once and not stored.
type Result struct {
	Tenant     id.Tenant
	State      *log.State
	Slug       id.Slug
	Membership account.Membership
	Known      bool // the owner's account existed: the membership is an offer
	Agent      agent.Credentials
	IngestKey  org.IngestKey
	Token      org.Token
}

// Account describes the owner's account: "created" with the organization, or already "known".
func (r *Result) Account() string {
	if r.Known {
		return "known"
	}
	return "created"
}

func (p *Provisioner) newTenant() (id.Tenant, error) {
	if p.NewTenant == nil {
		return id.NewTenant(), nil
	}
	return p.NewTenant()
}

// CreateOrganization creates an organization. It continues until its deadline if ctx is canceled.
//
// It returns fault.Invalid for an invalid request, fault.Conflict if the slug or the organization ID is taken,
// fault.Conflict with code account_known if a password is given for an existing account, and fault.OutcomeUnknown if
// the organization may exist but its secrets are lost.
func (p *Provisioner) CreateOrganization(ctx context.Context, r Request) (*Result, error) {
	if r.Organization == (id.Organization{}) {
		r.Organization = id.NewOrganization()
	}
	tenant, err := p.newTenant()
	if err != nil {
		return nil, err
	}
	f := org.Founding{
		Tenant: tenant, ID: r.Organization, Slug: r.Slug,
		Name: r.Name, Plan: r.Plan, Disclosure: r.Disclosure,
	}
	if err := p.checkRequest(r, f); err != nil {
		return nil, err
	}
	origin := p.Host.Origin(f.ID)
	if p.Ledgers.SlugTaken(f.Slug, origin) { // by an organization that the store may have lost
		return nil, fault.New(fault.Conflict, "slug is taken")
	}
	ctx, cancel := listener.DetachedContext(ctx)
	defer cancel()
	records, err := p.Organizations.FoundOrganization(ctx, f)
	if err != nil {
		return nil, err
	}
	result := &Result{Tenant: f.Tenant, Slug: f.Slug}
	for _, add := range []step{p.addOwner, p.addAgent, p.addIngestKey, p.addSystemKey} {
		more, err := add(ctx, r, result)
		if err != nil {
			return nil, err
		}
		records = append(records, more...)
	}
	result.State, err = p.createLedger(ctx, f.Tenant, log.Genesis{
		Organization: f.ID,
		Origin:       origin,
		Slug:         f.Slug,
		Changes:      records,
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// checkRequest checks a request before anything is written.
func (p *Provisioner) checkRequest(r Request, f org.Founding) error {
	if err := p.Organizations.CheckFounding(f); err != nil {
		return err
	}
	if r.Owner != "" {
		return nil
	}
	if _, err := account.ParseEmail(r.AdminEmail); err != nil {
		return err
	}
	if r.AdminPassword == "" {
		return nil
	}
	return password.Check(r.AdminPassword, r.AdminEmail, r.Name)
}

// step returns some of the first records of an organization, and sets the corresponding members of the result.
type step func(ctx context.Context, r Request, result *Result) ([]storage.Change, error)

func (p *Provisioner) addOwner(ctx context.Context, r Request, result *Result) ([]storage.Change, error) {
	owner, add := r.Owner, p.Accounts.NewMembership
	if owner == "" {
		who, known, err := p.Accounts.Owner(ctx, r.AdminEmail, r.AdminPassword, r.Name)
		if err != nil {
			return nil, err
		}
		owner, result.Known = who.ID, known
	}
	if result.Known {
		add = p.Accounts.NewOffer
	}
	membership, made, err := add(ctx, result.Tenant, owner, account.Owner)
	result.Membership = made
	return []storage.Change{membership}, err
}

func (p *Provisioner) addAgent(ctx context.Context, _ Request, result *Result) (records []storage.Change, err error) {
	records, result.Agent, err = p.Agents.NewAgent(ctx, result.Tenant, sysevent.Operator, agent.Wanted{})
	return records, err
}

func (p *Provisioner) addIngestKey(ctx context.Context, _ Request, result *Result) ([]storage.Change, error) {
	record, key, token, err := p.Organizations.NewIngestKey(ctx, result.Tenant, sysevent.Operator,
		org.WantedKey{Name: "first"})
	result.IngestKey, result.Token = key, token
	return []storage.Change{record}, err
}

func (p *Provisioner) addSystemKey(_ context.Context, r Request, _ *Result) ([]storage.Change, error) {
	record, err := sysevent.NewSystemKey(p.Keyring, r.Organization)
	return []storage.Change{record}, err
}

// createLedger performs the durable step. If its outcome is unknown, an existing ledger proves that the step was
// committed.
func (p *Provisioner) createLedger(ctx context.Context, t id.Tenant, g log.Genesis) (*log.State, error) {
	s, err := p.Ledgers.Create(ctx, t, g)
	if !fault.Is(err, fault.OutcomeUnknown) {
		return s, err
	}
	s, readErr := p.Ledgers.State(ctx, t)
	if readErr == nil {
		return s, nil
	}
	return nil, fault.Wrap(fault.OutcomeUnknown, "The organization may exist: if the same call is now rejected, it does",
		errors.Join(err, readErr))
}
