// Package workflow is the bridge for automation tools: a tool that has no agent key reports runs and their steps, and
// the service signs for it with the organization's bridge key. It hides the records of runs, the detection of
// repetitions and the signing.
//
//	running -> succeeded, failed, aborted (by the starting key)
//	running -> abandoned (by silence)
//
// Invariants:
//
//   - Each step is an event that the bridge key signed, under the policy and the cap that apply where it is appended.
//     Start and end are ledger_run events. Each event is committed in one append with the change of its run.
//   - A run belongs to its ingest key: for all others it does not exist.
//   - A run's events are in the ledger in the order of the run: start, steps, end. None follows its end.
//   - A run has one start for each external_run_id of its ingest key, and one event for each step_key and attempt. A
//     repeated request changes nothing and gets the same response, even if the run has ended in the meantime.
//   - A step that names an approval consumes it, once, in its own append. The approval is bound to the step's agent,
//     tool, payload and subject.
//   - A run that is silent for too long is abandoned, even before the event that records that is written.
//   - run_root is the RFC 6962 root over the event hashes of start and steps, in order. Every reader of the public
//     entries can compute it.
//   - The cost of a step, and of a page of a run, does not depend on the length of the run.
//   - Nothing of one organization is visible to another organization.
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

	// MaxRunningByKey is the number of running runs that one ingest key may have started: half of MaxRunning, so that
	// no tool uses up the capacity of the organization.
	MaxRunningByKey = MaxRunning / 2

	MaxSteps  = 10_000 // events of steps in a run
	MaxAtOnce = 50     // steps in one request

	// MaxStarts is the number of runs that may be started at once. As many more may be started in each hour, because
	// the events of start and end do not count toward a plan.
	MaxStarts  = 10_000
	startEvery = time.Hour / MaxStarts
)

// DefaultSilence is the time without a step after which a run is abandoned.
const DefaultSilence = 24 * time.Hour

// ID identifies a run. IDs increase with their time of creation.
type ID string

func newRunID(now id.Instant) ID { return ID(id.Rising("run_", now)) }

// Status is the state of a run.
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

// Flow is the workflow that a run executes, as its tool names it.
type Flow struct {
	Name    string `json:"name"`
	Version string `json:"version,omitzero"`
	Tool    string `json:"tool,omitzero"`
}

// Run is one run. It is immutable.
type Run struct {
	ID          ID
	Status      Status // when it was read
	IngestKeyID string // the key that started the run
	Agent       id.Agent
	Trace       id.Trace
	Workflow    Flow
	External    string // "" if none
	Planned     *int
	InputDigest *id.Hash
	StartedAt   id.Instant
	LastAt      id.Instant // when the last event was reported
	EndedAt     id.Instant // 0 if it is running
	Ending      Ending     // if it has ended
	Result      Result     // so far, if it has not ended
}

// Result is the result of a run.
type Result struct {
	Recorded int     // different step_keys
	Events   int     // leaves under Root: the start and an event for each attempt of a step
	Planned  *int    // nil if not reported
	Gap      *int    // Planned minus Recorded, if it has ended
	Root     id.Hash // run_root; zero until it has ended
}

// Placed is the position of an event of a run.
type Placed struct {
	Event      id.Event
	Index      id.Index
	Hash       id.Hash
	ChainValid bool
	Replayed   bool // it was in the ledger before this request
}

// Organizations provides settings and caps. org.Orgs implements it.
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
	Webhooks      *webhook.Sender // sends notices; default: none
	Approvals     *approval.Approvals

	Processors *admission.FairQueue  // in which signing waits; default: not bounded
	Silence    time.Duration         // of new runs; default: DefaultSilence
	MaxBytes   int                   // of a step's envelope; default event.DefaultMaxBytes
	Clock      func() time.Time      // default: time.Now
	Held       func() error          // returns an error while Run must not sweep; nil: never
	Metrics    prometheus.Registerer // default: not registered
}

// Workflows contains the runs of all organizations. Its methods may be called concurrently.
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
	known   *cache.Map[place, records.Versioned[record]] // runs as they were last written by this process
	metrics *metrics
}

// place identifies a run of an organization.
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

// activeSettings returns the settings of an organization that accepts events.
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

// errEnded rejects a change for which the run must be running.
func errEnded(s Status) error { return errConflict("The run is " + string(s)) }

// errNotBridged rejects an agent that is not enabled for the bridge.
func errNotBridged() error { return errInvalid("The agent is not enabled for the bridge") }

// unreadableMessage is the message for clients if runs cannot be read.
const unreadableMessage = "Runs can't be read"

// errUnreadable wraps an error of the store.
func errUnreadable(step string, err error) error {
	return records.Unreadable(unreadableMessage, step, err)
}
