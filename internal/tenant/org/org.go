// Package org is the organizations of the service: their names, plans and
// settings, and the ingest keys by which their agents come in.
//
// Invariants:
//
//   - An organization id and a slug belong to one organization for ever. Both are
//     claimed in the service's own partition before the organization is made; a
//     claim without the organization behind it is never shown as existing.
//   - A claim changes hands only after its owner was made impossible, so that of
//     several calls for one name at most one makes an organization.
//   - Each change of settings and of ingest keys lands in the organization's
//     ledger in one append with the statement about it. Only the first records
//     of a new organization have no statement.
//   - Of an ingest key only a hash is stored. Its secret is shown once and is in
//     no error and no log line.
//   - Agents, ingest keys and policies have the bounds of the plan or of the organization.
//     The append that makes one checks them. Older ones beyond a bound stay.
//   - A setting that can't be read refuses the request. It never means "no limit" or "active".
//   - Nothing of one organization is visible under another's handle.
package org

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Ledgers returns the published state of a ledger, and changes its keys and its clock (package log).
type Ledgers interface {
	State(ctx context.Context, t id.Tenant) (*log.State, error)
	// LastShown returns a ledger that another node owns, as it was at its anchor.
	LastShown(ctx context.Context, t id.Tenant) (*log.State, error)

	RotateLogKey(ctx context.Context, s *log.State) (*log.KeyChange, error)
	RetireLogKey(ctx context.Context, s *log.State) (*log.KeyChange, error)
	CorrectClock(ctx context.Context, s *log.State) (*log.ClockChange, error)
}

// Agents tells whether an organization has an agent (package agent).
type Agents interface {
	Exists(ctx context.Context, t id.Tenant, agent id.Agent) (bool, error)
}

// Options configure New. Records, Notary and Ledgers are required.
type Options struct {
	Records storage.RecordStore
	Events  *sysevent.Appender
	Ledgers Ledgers

	Witnesses WitnessRules // which witnesses may be named; default: none
	Providers []string     // names of the OpenID providers that may be required to sign in

	Quota       *quota.Quota     // counts ingest keys and paces changes; default: one of its own
	Agents      Agents           // that ingest keys may be for; default: none
	Plans       []Plan           // default: DefaultPlans
	Environment string           // <env> of ingest keys, [a-z0-9]{1,16}; default "live"
	Clock       func() time.Time // default: time.Now
	Cached      int              // organizations, and ingest keys, kept in memory; default 65,536

	// Watch is that of an engine which this process alone writes. nil: ingest keys are read again each second.
	Watch   func(kinds ...storage.Kind) (writes func() uint64)
	Metrics prometheus.Registerer // default: none
}

const (
	// callerAge is how old the knowledge of an ingest key may be.
	callerAge = time.Second
	// staleCaller is how much older it may be while the store does not answer: a
	// revocation is a write to that store. Only one of another process, made in the
	// last second before this one lost the store, is noticed so late.
	staleCaller = time.Minute
)

// Orgs is all organizations of a store. Its methods may be called concurrently.
type Orgs struct {
	records storage.RecordStore
	events  *sysevent.Appender
	ledgers Ledgers
	quota   *quota.Quota
	agents  Agents // nil: there are none
	rules   WitnessRules

	providers []string

	plans map[string]Plan
	env   string
	clock func() time.Time

	settings *cache.Loading[id.Tenant, *Settings]      // of a config version
	callers  *cache.Loading[id.Hash, *ingestKeyCaller] // by hash of the token
	slugs    *cache.Loading[id.Slug, id.Tenant]
	ids      *cache.Loading[id.Organization, id.Tenant]
	uses     keyUses
}

// New returns the organizations of a store. They tell Options.Quota its bounds from then on.
func New(o Options) (*Orgs, error) {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Cached == 0 {
		o.Cached = 1 << 16
	}
	if o.Watch == nil {
		o.Watch = func(...storage.Kind) func() uint64 { return nil }
	}
	if o.Environment == "" {
		o.Environment = "live"
	}
	if o.Quota == nil {
		o.Quota = &quota.Quota{Records: o.Records, Clock: o.Clock}
	}
	if o.Plans == nil {
		o.Plans = DefaultPlans()
	}
	plans, err := indexPlans(o.Plans)
	if err != nil {
		return nil, err
	}
	if !validEnvironment(o.Environment) {
		return nil, errors.New("organizations: environment of ingest keys must be 1 to 16 of a-z 0-9")
	}
	all := &Orgs{
		records: o.Records, events: o.Events, ledgers: o.Ledgers, quota: o.Quota,
		agents: o.Agents, rules: o.Witnesses, providers: o.Providers, plans: plans, env: o.Environment, clock: o.Clock,
		settings: cache.NewLoading(cache.LoadingOptions[id.Tenant, *Settings]{
			MaxAge: cache.Forever,
			Limit:  int64(o.Cached),
		}),
		callers: cache.NewLoading(cache.LoadingOptions[id.Hash, *ingestKeyCaller]{
			MaxAge: callerAge,
			Stale:  staleCaller,
			Writes: o.Watch(kindIngestKeyClaim, kindIngestKey, kindOrg),
			Limit:  int64(o.Cached),
			Clock:  o.Clock,
		}),
		slugs: cache.NewLoading(cache.LoadingOptions[id.Slug, id.Tenant]{
			MaxAge: cache.Forever,
			Limit:  int64(o.Cached),
			Clock:  o.Clock,
		}),
		ids: cache.NewLoading(cache.LoadingOptions[id.Organization, id.Tenant]{
			MaxAge: cache.Forever,
			Limit:  int64(o.Cached),
			Clock:  o.Clock,
		}),
	}
	o.Quota.Plans = all
	if o.Metrics != nil {
		o.Metrics.MustRegister(cache.StaleCounter("ingest_keys", all.callers.StaleAnswers))
	}
	return all, nil
}

func (o *Orgs) currentTime() id.Instant { return id.InstantOf(o.clock()) }

func errNotFound() error { return fault.New(fault.NotFound, "Not found") }

// errUnreadable wraps an error of the store: nothing can be said about an
// organization that can't be read.
func errUnreadable(step string, err error) error {
	return records.Unreadable("The organization can't be read", step, err)
}

// isAbsent reports whether a read found positively nothing.
func isAbsent(err error) bool { return errors.Is(err, storage.ErrNotFound) }
