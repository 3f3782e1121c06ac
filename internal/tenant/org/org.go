// Package org manages the organizations of the service: their names, plans and settings, and the ingest keys of their
// agents. It hides how names are claimed, how settings are cached, and how changes are stated.
//
// Invariants:
//
//   - An organization ID and a slug belong permanently to one organization. Both are claimed in the service's own
//     partition before the organization is created. A claim without an organization is never visible.
//   - A claim is taken over only after its holder can no longer become an organization, so of several calls for one
//     name at most one creates an organization.
//   - Each change of settings and of ingest keys is committed in the organization's ledger in one append with the
//     statement about it. Only the first records of a new organization have no statement.
//   - Only a hash of an ingest key is stored. Its secret is shown once, and never appears in an error or a log line.
//   - Agents, ingest keys and policies are limited by the plan or by the organization's own limits. The append that
//     creates one checks the limit. Existing ones beyond a limit remain.
//   - A setting that can't be read makes the request fail. It never means "no limit" or "active".
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

// Ledgers returns the published state of a ledger, and changes its keys and its clock. log.Ledgers implements it.
type Ledgers interface {
	State(ctx context.Context, t id.Tenant) (*log.State, error)
	// LastShown returns a ledger that another node owns, as of its anchor.
	LastShown(ctx context.Context, t id.Tenant) (*log.State, error)

	RotateLogKey(ctx context.Context, s *log.State) (*log.KeyChange, error)
	RetireLogKey(ctx context.Context, s *log.State) (*log.KeyChange, error)
	CorrectClock(ctx context.Context, s *log.State) (*log.ClockChange, error)
}

// Agents reports whether an organization has an agent. agent.Agents implements it.
type Agents interface {
	Exists(ctx context.Context, t id.Tenant, agent id.Agent) (bool, error)
}

// Options configure New. Records, Events and Ledgers are required.
type Options struct {
	Records storage.RecordStore
	Events  *sysevent.Appender
	Ledgers Ledgers

	Witnesses WitnessRules // which witnesses are allowed; may be nil
	Providers []string     // names of the OpenID providers that an organization may require

	Quota       *quota.Quota     // counts ingest keys and limits changes; default: a new one
	Agents      Agents           // for which ingest keys may be restricted; may be nil
	Plans       []Plan           // default: DefaultPlans
	Environment string           // <env> of ingest keys, [a-z0-9]{1,16}; default: "live"
	Clock       func() time.Time // default: time.Now
	Cached      int              // cached organizations, and cached ingest keys; default: 65,536

	// Watch is the Watch of an engine to which only this process writes. If nil, ingest keys are read again every
	// second.
	Watch   func(kinds ...storage.Kind) (writes func() uint64)
	Metrics prometheus.Registerer // default: not registered
}

const (
	// callerAge is the maximum age of the cached state of an ingest key.
	callerAge = time.Second
	// staleCaller is how much older it may be while the store does not respond: a revocation is a write to that
	// store. Only a revocation by another process, in the last second before this process lost the store, is noticed
	// that late.
	staleCaller = time.Minute
)

// Orgs manages all organizations of a store. Its methods may be called concurrently.
type Orgs struct {
	records storage.RecordStore
	events  *sysevent.Appender
	ledgers Ledgers
	quota   *quota.Quota
	agents  Agents // may be nil
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

// New returns the organizations of a store.
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
	if all.quota == nil {
		all.quota = &quota.Quota{Records: o.Records, Clock: o.Clock, Plan: all.Limits}
	}
	if o.Metrics != nil {
		o.Metrics.MustRegister(cache.StaleCounter("ingest_keys", all.callers.StaleAnswers))
	}
	return all, nil
}

func (o *Orgs) currentTime() id.Instant { return id.InstantOf(o.clock()) }

func errNotFound() error { return fault.New(fault.NotFound, "Not found") }

// errUnreadable wraps an error of the store: the state of the organization is unknown.
func errUnreadable(step string, err error) error {
	return records.Unreadable("The organization can't be read", step, err)
}

// isAbsent reports whether a read established that there is no record.
func isAbsent(err error) bool { return errors.Is(err, storage.ErrNotFound) }
