// Package provision makes an organization ready to work: ledger and log key, system key, an owner, a
// first agent with its key and a first ingest key.
//
// Invariants:
//
//   - All records of the organization come to be with its empty ledger, in one durable step.
//     Before it there are only claims, which show nothing.
//   - A call that failed or died before that step can be repeated with the same names. Of several
//     calls for one name at most one succeeds.
//   - Nothing is written to the new log: its first event is number 1.
//   - The only members are an account that is made with the organization and accounts that accept
//     by signing in.
//   - Private key and ingest key are in the result and nowhere else.
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

// Provisioner makes organizations. All fields but NewTenant are required; its methods may be
// called concurrently.
type Provisioner struct {
	// NewTenant returns a random handle, of an organization that this process will own. Default: id.NewTenant.
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
	Plan         string          // "": org.DefaultPlan
	Organization id.Organization // zero: a random one
	Disclosure   id.Disclosure   // 0: record

	// Owner. A known account is offered to become owner, which it accepts by signing in;
	// no password may be given for it, and it keeps its own, or its having none. An
	// unknown one is made, without a password when none is given: it can't sign in before
	// it is given one (account.SetPassword).
	AdminEmail    string
	AdminPassword string

	// Owner is the account that makes the organization for itself, in place of AdminEmail.
	Owner account.ID
}

// Result is a new organization. Agent and Token hold secrets that are shown to the caller once and
// not kept.
type Result struct {
	Tenant     id.Tenant
	State      *log.State
	Slug       id.Slug
	Membership account.Membership
	Known      bool // the owner's account: the membership is an offer
	Agent      agent.Credentials
	IngestKey  org.IngestKey
	Token      org.Token
}

// Account says whether the owner's account was made with the organization: created or known.
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

// CreateOrganization makes an organization; it goes on when ctx is cancelled, until its deadline.
//
// fault.Invalid for a request that can't be, fault.Conflict when its slug or
// organization id is taken and, with code account_known, for a password that is given for
// a known account, fault.OutcomeUnknown when the organization may exist
// and its secrets are lost.
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
	if p.Ledgers.SlugTaken(f.Slug, origin) { // by one that the store may have lost
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

// step makes some of the first records of an organization, and puts the members for the caller into
// the result.
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

// createLedger takes the durable step. When its outcome is unknown, an existing ledger proves that
// the step was taken.
func (p *Provisioner) createLedger(ctx context.Context, t id.Tenant, g log.Genesis) (*log.State, error) {
	s, err := p.Ledgers.Create(ctx, t, g)
	if !fault.Is(err, fault.OutcomeUnknown) {
		return s, err
	}
	s, readErr := p.Ledgers.State(ctx, t)
	if readErr == nil {
		return s, nil
	}
	return nil, fault.Wrap(fault.OutcomeUnknown, "The organization may exist; if the same call is refused now, it does",
		errors.Join(err, readErr))
}
