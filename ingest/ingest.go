// Package ingest is the HTTP API for agents: it appends signed events to the ledger of an organization, one or many per
// request, evaluates the organization's policy for a tool call, also in the form of the AuthZEN Authorization API,
// requests approvals, and records the runs of automation tools. It hides authentication, load control and the encoding
// of responses.
//
// Invariants:
//
//   - The checks of a request have one order, and the first failure determines the response. Nothing of a refused
//     request is stored.
//   - A request that was accepted before is answered from the store, even if key, clock, policy or cap have changed
//     since.
//   - An event is decided under the ledger state that it is appended to: activity of the organization, state of the
//     key, policy, limits, cap, disclosure.
//   - A decision is never weaker than the declared one. A policy that cannot be read rejects and never allows.
//   - Each event of a batch gets the response that it would get alone after the events before it. Events are appended
//     in the order of their lines.
//   - Any number of batches is read by at most as many goroutines as there are processors.
//   - CPU-bound work is scheduled in turns between organizations, and overload is rejected before the body is read.
//   - An ingest key acts only for its own organization, in its scopes and for its agents, and reveals nothing of
//     others.
package ingest

import (
	"context"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/keytable"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/tenant/subjecttoken"
	"github.com/agentledger/agentledger/log"
)

// Ledgers reads and appends events (package log).
type Ledgers interface {
	State(ctx context.Context, t id.Tenant) (*log.State, error)
	Replays(ctx context.Context, s *log.State, queries []log.Query) []log.Replay
	AppendTo(ctx context.Context, s *log.State, prepares []log.Prepare) []log.Outcome
	Timely(s *log.State) error
	policystore.Ledgers
	policystore.Stored
}

// Organizations provides ingest keys and settings. org.Orgs implements it.
type Organizations interface {
	Authenticate(ctx context.Context, token string) (*org.Caller, error)
	Settings(ctx context.Context, s *log.State) (*org.Settings, error)
	EventsPerMonth(*org.Settings) uint64
}

// Agents provides the keys of agents in any state. SigningKey returns fault.NotFound if the key was never registered
// for the agent. CheckActive rejects a disabled agent.
type Agents interface {
	CheckActive(ctx context.Context, s *log.State, a id.Agent) error
	SigningKey(ctx context.Context, s *log.State, a id.Agent, k id.Key) (agent.Key, error)
}

// Approvals manages requests for approval. approval.Approvals implements it.
type Approvals interface {
	Ask(ctx context.Context, t id.Tenant, q approval.Question) (asked approval.Approval, made bool, err error)
	Get(ctx context.Context, t id.Tenant, ingestKey string, name approval.ID,
		wait time.Duration) (approval.Approval, error)
	Consume(ctx context.Context, t id.Tenant, name approval.ID, claim approval.Claim) (grant string, err error)
	Cancel(ctx context.Context, t id.Tenant, ingestKey string, name approval.ID) error
}

// Workflows manages runs of automation tools. workflow.Workflows implements it.
type Workflows interface {
	Start(ctx context.Context, t id.Tenant, b workflow.Beginning) (run workflow.Run, started workflow.Placed,
		made bool, err error)
	Record(ctx context.Context, t id.Tenant, ingestKey string, name workflow.ID,
		steps []workflow.Step) ([]workflow.Recorded, error)
	Complete(ctx context.Context, t id.Tenant, ingestKey string, name workflow.ID, e workflow.Ending) (workflow.Run,
		error)
	Get(ctx context.Context, t id.Tenant, ingestKey string, name workflow.ID, after, limit int) (run workflow.Run,
		events []workflow.Event, next int, err error)
}

// Options configure New. The first seven are required.
type Options struct {
	Edge          *edge.Edge
	Ledgers       Ledgers
	Organizations Organizations
	Agents        Agents
	Policies      policystore.ActiveSource
	Approvals     Approvals
	Workflows     Workflows
	Subjects      *subjecttoken.Verifier // if nil, the tokens of no ingest key are verified

	// PublicURL is the address of the service for clients, without a trailing slash: the identifier of the AuthZEN
	// policy decision point. If "", its metadata are not served, and access cannot be requested.
	PublicURL string

	// Keyring authenticates the denials that an access request follows. It is required if there is a PublicURL.
	Keyring *seal.Keyring

	Clock    func() time.Time // default: time.Now
	MaxBytes int              // of a body as sent and of a canonical envelope; default: 256 KiB
	MaxAhead time.Duration    // how far emitted_at may be in the future; default: 15 minutes
	MaxAge   time.Duration    // how far emitted_at may be in the past; 0: not bounded

	// Requests in flight in total and of one organization, from authentication to response. Each 64 KiB of a body count
	// as one more. Evaluations are bounded separately by the same numbers. Defaults: 4,096 and 1,024.
	MaxInFlight, MaxInFlightOrganization int

	// Waiting long polls in total and of one organization. They are bounded separately because they only wait.
	// Defaults: 6,144 and 1,024.
	MaxPolls, MaxPollsOrganization int

	// Control is the load control, shared with other HTTP interfaces. Default: a new one for runtime.GOMAXPROCS(0)
	// processors.
	Control *admission.Control

	// Refusals per second of one organization, and of all unknown callers, that are sent immediately. Further ones are
	// delayed by a second. If 0, none is delayed.
	MaxRefusals int

	KeyTableBytes int64              // for tables of the most used keys; 0: none
	Verified      *keytable.Verified // caches verified signatures; may be nil

	Metrics prometheus.Registerer // default: not registered
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = event.DefaultMaxBytes
	}
	if o.MaxAhead == 0 {
		o.MaxAhead = 15 * time.Minute
	}
	if o.MaxInFlight == 0 {
		o.MaxInFlight = 4096
	}
	if o.MaxInFlightOrganization == 0 {
		o.MaxInFlightOrganization = 1024
	}
	if o.MaxPolls == 0 {
		o.MaxPolls = 6144
	}
	if o.MaxPollsOrganization == 0 {
		o.MaxPollsOrganization = 1024
	}
	if o.Control == nil {
		o.Control = admission.New(runtime.GOMAXPROCS(0))
	}
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	return o
}

// Server serves the API. It stores nothing of a request.
type Server struct {
	edge     edge.Edge
	ledgers  Ledgers
	orgs     Organizations
	agents   Agents
	policies policystore.ActiveSource
	intents  *policystore.Intents

	approvals Approvals
	workflows Workflows
	subjects  *subjecttoken.Verifier // may be nil

	clock            func() time.Time
	maxBytes         int
	maxAhead, maxAge time.Duration

	control     *admission.Control
	limit       *admission.Limit
	evaluations *admission.Limit     // separate, so that events that wait for the store do not displace evaluations
	polls       *admission.Limit     // of waiting polls
	lines       *admission.FairQueue // of the lines of batches between reading and appending
	pacer       *admission.RefusalPacer
	keyTables   *keytable.Tables
	verified    *keytable.Verified
	metrics     *metrics
	values      headerValues
	publicURL   string
	keyring     *seal.Keyring
}

// linesInQueue bounds the lines of an organization's batches that are being appended when another batch starts. With
// that batch and the single requests that may be in flight, the queue of the ledger never overflows, so a batch waits
// as a whole and is never partly refused.
const linesInQueue = 2048

// refusalDelay is the delay of refusals beyond Options.MaxRefusals.
const refusalDelay = time.Second

// New returns a server. Its 401 responses contain a Bearer challenge.
func New(o Options) *Server {
	o = o.withDefaults()
	s := &Server{
		edge: *o.Edge, ledgers: o.Ledgers, orgs: o.Organizations, agents: o.Agents, policies: o.Policies,
		intents: policystore.NewIntents(o.Ledgers), approvals: o.Approvals, workflows: o.Workflows, subjects: o.Subjects,
		clock: o.Clock, maxBytes: o.MaxBytes, maxAhead: o.MaxAhead, maxAge: o.MaxAge,
		control:     o.Control,
		limit:       admission.NewLimit(o.MaxInFlight, o.MaxInFlightOrganization),
		evaluations: admission.NewLimit(o.MaxInFlight, o.MaxInFlightOrganization),
		polls: admission.NewSharedLimit(o.MaxPolls, o.MaxPollsOrganization,
			"Too many polls wait; ask again later, or without wait", pollRetry),
		lines:     admission.NewFairQueue(linesInQueue),
		pacer:     admission.NewRefusalPacer(o.MaxRefusals, refusalDelay),
		keyTables: keytable.New(keytable.Options{Bytes: o.KeyTableBytes, Clock: o.Clock}),
		verified:  o.Verified,
		values:    newHeaderValues(),
		publicURL: o.PublicURL, keyring: o.Keyring,
	}
	s.keyTables.Register(o.Metrics)
	s.metrics = newMetrics(o.Metrics, s.pacer, s.polls, s.limit, s.evaluations)
	s.edge.Quiet = true
	s.edge.Challenge = "Bearer"
	return s
}

// handler serves a request of c, whose body has been read.
type handler func(w http.ResponseWriter, r *http.Request, c caller, body []byte) error

// Routes adds the routes of the API to r.
func (s *Server) Routes(r *edge.Router) {
	event := edge.JSONBody(int64(s.maxBytes))
	claim := edge.JSONBody(maxClaim)
	approvals := permitScope(org.ScopeApprovals)
	var table edge.Table[handler]
	table.Add("POST", "/v1/ingest/events", permitScope(org.ScopeEvents), event, s.postEvent, edge.Fast)
	table.Add("POST", batchPath, permitScope(org.ScopeEvents), edge.LinesBody(maxBatchBytes),
		s.postBatch, edge.InPlace)
	table.Add("POST", "/v1/ingest/policy/evaluate", permitScope(org.ScopeEvaluate), event, s.evaluatePolicy, edge.Fast)
	table.Add("POST", "/v1/ingest/approvals", approvals, event, s.postApproval)
	table.Add("GET", "/v1/ingest/approvals/{approval}", approvals, edge.Body{}, s.answerApproval, edge.LongPoll).
		Takes("wait")
	table.Add("POST", "/v1/ingest/approvals/{approval}/consume", approvals, claim, s.consumeApproval)
	table.Add("POST", "/v1/ingest/approvals/{approval}/cancel", approvals, claim, s.cancelApproval)
	workflows, run := permitScope(org.ScopeWorkflows), edge.JSONBody(maxRun)
	for _, prefix := range []string{"/v1/ingest/workflows", "/workflows"} {
		table.Add("POST", prefix+"/runs", workflows, run, s.postRun)
		table.Add("GET", prefix+"/runs/{run}", workflows, edge.Body{}, s.answerRun).TakesPage()
		table.Add("POST", prefix+"/runs/{run}/steps", workflows, edge.JSONBody(maxBatchBytes), s.postSteps)
		table.Add("POST", prefix+"/runs/{run}/complete", workflows, run, s.completeRun)
	}
	edge.Mount(r, edge.Surface[handler]{Edge: &s.edge, Serve: s.serveRoute, Wait: edge.LongestWait}, table)
	s.routesOfAuthZEN(r)
}

// permitScope returns the permission of routes of a scope.
func permitScope(scope org.Scope) edge.Permission {
	return edge.Permission{Credential: edge.IngestKey, Right: scope.String()}
}
