// Package workflow is the bridge for automation tools: a tool that holds no agent key reports runs
// and their steps, and the service signs for it with the organization's bridge key.
//
//	running -> succeeded, failed, aborted (by the starting key)
//	running -> abandoned (by silence)
//
// Invariants:
//
//   - Each step is an event that the bridge key signed, under the policy and the cap that hold
//     where it lands. Start and end are ledger_run events. Each event lands in one append with the
//     change of its run.
//   - A run belongs to its ingest key: for all others it does not exist.
//   - A run's events lie in the ledger in the order of the run: start, steps, end. None comes
//     after its end.
//   - A run has one start for each external_run_id of its ingest key, and one event for each
//     step_key and attempt. A repeated request changes nothing and gets the same answer, also when
//     the run has ended meanwhile.
//   - A step that names an approval consumes it, once, in its own append. The approval is bound to the
//     step's agent, tool and payload.
//   - A run that is silent for too long is abandoned, also before the event that says so is
//     written.
//   - run_root is the RFC 6962 root over the event hashes of start and steps, in their order.
//     Every reader of the public entries can compute it.
//   - The cost of a step, and of a page of a run, does not grow with the run.
//   - Nothing of one organization is visible under another's handle.
package workflow

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/flow/approval"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Bounds of an organization's runs and of one run.
const (
	MaxRunning = 10_000 // runs that have not ended

	// MaxRunningByKey is the number of running runs that one ingest key may have started: half of
	// all, so that no tool takes the room of the organization's others.
	MaxRunningByKey = MaxRunning / 2

	MaxSteps  = 10_000 // events of steps in a run
	MaxAtOnce = 50     // steps in one request

	// MaxStarts is how many runs may be started at once. As many more may in each hour:
	// start and end are events that no plan counts.
	MaxStarts  = 10_000
	startEvery = time.Hour / MaxStarts
)

// DefaultSilence is after which time without a step a run is abandoned.
const DefaultSilence = 24 * time.Hour

// ID names a run. Ids of one service rise with the time they were made.
type ID string

func newRunID(now id.Instant) ID { return ID(id.Rising("run_", now)) }

// Status is where a run stands.
type Status string

const (
	Running   Status = "running"
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Aborted   Status = "aborted"
	Abandoned Status = "abandoned"
)

// Valid reports whether s is one of the states.
func (s Status) Valid() bool {
	switch s {
	case Running, Succeeded, Failed, Aborted, Abandoned:
		return true
	}
	return false
}

// Flow is the workflow that a run executes, as its tool calls it.
type Flow struct {
	Name    string `json:"name"`
	Version string `json:"version,omitzero"`
	Tool    string `json:"tool,omitzero"`
}

// Run is one run. A value that was handed out never changes.
type Run struct {
	ID          ID
	Status      Status // as of the moment it was read
	IngestKeyID string // the key that started the run
	Agent       id.Agent
	Trace       id.Trace
	Workflow    Flow
	External    string // "" for none
	Planned     *int
	InputDigest *id.Hash
	StartedAt   id.Instant
	LastAt      id.Instant // when it was last heard of
	EndedAt     id.Instant // 0 while it is running
	Ending      Ending     // of one that has ended
	Result      Result     // so far, of one that has not ended
}

// Result is the result of a run.
type Result struct {
	Recorded int     // different step_keys
	Events   int     // leaves under Root: the start and an event for each attempt of a step
	Planned  *int    // nil when that was not told
	Gap      *int    // Planned less Recorded, of one that has ended
	Root     id.Hash // run_root, zero until it has ended
}

// Placed is where an event of a run lies.
type Placed struct {
	Event      id.Event
	Index      id.Index
	Hash       id.Hash
	ChainValid bool
	Replayed   bool // it was there before this request
}

// Organizations knows settings and caps (package org).
type Organizations interface {
	Settings(ctx context.Context, s *log.State) (*org.Settings, error)
	EventsPerMonth(*org.Settings) uint64
}

// Options configure New. The first six are required, and Approvals for steps that consume some.
type Options struct {
	Records       storage.RecordStore
	Events        *sysevent.Appender
	Ledgers       *log.Ledgers
	Policies      policystore.ActiveSource
	Agents        *agent.Agents
	Organizations Organizations
	Webhooks      *webhook.Sender // of notices; default: none
	Approvals     *approval.Approvals

	Processors *admission.FairQueue  // of signatures; default: no bound
	Silence    time.Duration         // of runs that begin from now on; default DefaultSilence
	MaxBytes   int                   // of a step's envelope; default event.DefaultMaxBytes
	Clock      func() time.Time      // default: time.Now
	Held       func() error          // returns an error while Run must not sweep; nil: never
	Metrics    prometheus.Registerer // default: none
}

// Workflows is the runs of all organizations. Its methods may be called concurrently.
type Workflows struct {
	stores   stores
	events   *sysevent.Appender
	ledgers  *log.Ledgers
	policies policystore.ActiveSource
	intents  *policystore.Intents
	agents   *agent.Agents
	orgs     Organizations
	webhooks *webhook.Sender

	approvals  *approval.Approvals
	processors *admission.FairQueue
	silence    time.Duration
	maxBytes   int
	clock      func() time.Time
	held       func() error

	due     schedule.Index
	lanes   syncs.KeyLocks[place]
	known   *cache.Map[place, records.Versioned[record]] // runs as they were last written here
	metrics *metrics
}

// place is a run of an organization.
type place struct {
	tenant id.Tenant
	name   ID
}

// New returns the runs of a store.
func New(o Options) *Workflows {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Silence == 0 {
		o.Silence = DefaultSilence
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = event.DefaultMaxBytes
	}
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	return &Workflows{
		stores: storesOf(o.Records), events: o.Events, ledgers: o.Ledgers, policies: o.Policies,
		intents: policystore.NewIntents(o.Ledgers), known: newKnownRuns(), agents: o.Agents, orgs: o.Organizations,
		approvals:  o.Approvals,
		processors: o.Processors, silence: o.Silence, maxBytes: o.MaxBytes, clock: o.Clock, held: o.Held,
		webhooks: o.Webhooks,
		due:      schedule.Index{Records: o.Records, Kind: kindDue},
		metrics:  newMetrics(o.Metrics),
	}
}

func (w *Workflows) currentTime() id.Instant { return id.InstantOf(w.clock()) }

// activeSettings returns the settings of an organization that takes events.
func (w *Workflows) activeSettings(ctx context.Context, s *log.State) (*org.Settings, error) {
	settings, err := w.orgs.Settings(ctx, s)
	if err != nil {
		return nil, err
	}
	if !settings.Active {
		return nil, fault.New(fault.Forbidden, "The organization is inactive")
	}
	return settings, nil
}

func errNotFound() error { return fault.New(fault.NotFound, "Not found") }

func errInvalid(message string) error { return fault.New(fault.Invalid, message) }

func errConflict(message string) error { return fault.New(fault.Conflict, message) }

// errEnded refuses a change that only a running run takes.
func errEnded(s Status) error { return errConflict("The run is " + string(s)) }

// errNotBridged refuses agents that are not enabled for the bridge.
func errNotBridged() error { return errInvalid("The agent is not enabled for the bridge") }

// unreadableMessage is the message for clients when runs cannot be read.
const unreadableMessage = "Runs can't be read"

// errUnreadable wraps an error of the store: nothing can be said about a run that can't
// be read.
func errUnreadable(step string, err error) error {
	return records.Unreadable(unreadableMessage, step, err)
}
