// Package ingest is the HTTP surface of agents: it takes signed events, one or
// many in a request, into the ledger of an organization, evaluates its policy on a
// tool call, asks people for approvals, and records the runs of automation tools.
//
// Invariants:
//
//   - The checks of a request have one order, and the first that fails gives the
//     answer. Nothing of a refused request is stored.
//   - A request that was accepted before is answered from the store, even if key,
//     clock, policy or cap have changed since.
//   - An event is decided by the ledger state that it is appended to: activity of the
//     organization, state of the key, policy, limits, cap, disclosure.
//   - The declared decision is only ever tightened. A policy that can't be read
//     refuses; it never allows.
//   - Each event of a batch gets the answer that it would get alone after the events
//     before it. Events are appended in the order of their lines.
//   - However many batches there are, the reading of their lines takes no more
//     goroutines than there are processors.
//   - Work that takes processors goes in turns between organizations, and what is
//     too much is refused before its body is looked at.
//   - An ingest key acts for its own organization, in its scopes and for its
//     agents, and learns nothing of others.
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
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
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

// Organizations finds ingest keys and settings (package org).
type Organizations interface {
	Authenticate(ctx context.Context, token string) (*org.Caller, error)
	Settings(ctx context.Context, s *log.State) (*org.Settings, error)
	EventsPerMonth(*org.Settings) uint64
}

// Agents finds the key of an agent in any state; fault.NotFound when it was never
// registered for that agent. CheckActive refuses an agent that is switched off.
type Agents interface {
	CheckActive(ctx context.Context, s *log.State, a id.Agent) error
	SigningKey(ctx context.Context, s *log.State, a id.Agent, k id.Key) (agent.Key, error)
}

// Approvals are requests for the consent of people (package approval).
type Approvals interface {
	Ask(ctx context.Context, t id.Tenant, q approval.Question) (asked approval.Approval, made bool, err error)
	Get(ctx context.Context, t id.Tenant, ingestKey string, name approval.ID,
		wait time.Duration) (approval.Approval, error)
	Consume(ctx context.Context, t id.Tenant, name approval.ID, claim approval.Claim) (grant string, err error)
	Cancel(ctx context.Context, t id.Tenant, ingestKey string, name approval.ID) error
}

// Workflows are runs of automation tools (package workflow).
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

	Clock    func() time.Time // default: time.Now
	MaxBytes int              // of a body as sent and of an envelope in canonical form; default 256 KiB
	MaxAhead time.Duration    // how far emitted_at may be in the future; default 15 minutes
	MaxAge   time.Duration    // how far emitted_at may be in the past; 0: no bound

	// Requests under way in all and of one organization, from authentication to
	// answer; each 64 KiB of a body count as one more. Evaluations are bounded apart, by
	// the same numbers. Defaults: 4,096 and 1,024.
	MaxInFlight, MaxInFlightOrganization int

	// Long polls that wait in all and of one organization, which are bounded apart
	// because they do nothing but wait. Defaults: 6,144 and 1,024.
	MaxPolls, MaxPollsOrganization int

	// Control is the load control shared with other surfaces; default: one of its own for
	// runtime.GOMAXPROCS(0) processors.
	Control *admission.Control

	// Refusals a second of one organization, and of all unknown callers, that are
	// answered at once; those beyond are answered a second later. 0: all at once.
	MaxRefusals int

	KeyTableBytes int64              // for tables of the keys that sign most; 0: none
	Verified      *keytable.Verified // is told which signatures were verified; nil: nothing is

	Metrics prometheus.Registerer // default: none
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

// Server serves the surface. It keeps nothing of a request.
type Server struct {
	edge     edge.Edge
	ledgers  Ledgers
	orgs     Organizations
	agents   Agents
	policies policystore.ActiveSource
	intents  *policystore.Intents

	approvals Approvals
	workflows Workflows

	clock            func() time.Time
	maxBytes         int
	maxAhead, maxAge time.Duration

	control     *admission.Control
	limit       *admission.Limit
	evaluations *admission.Limit     // apart, so that events that wait for the store do not refuse evaluations
	polls       *admission.Limit     // of polls that wait
	lines       *admission.FairQueue // of batches, by lines, between reading and the queue
	pacer       *admission.RefusalPacer
	keyTables   *keytable.Tables
	verified    *keytable.Verified
	metrics     *metrics
	values      headerValues
}

// linesInQueue is how many lines of an organization's batches may be in its queue for
// another batch to join them: with that one and the single requests that may be
// under way there are never more than the queue takes, so that a batch waits as a
// whole and is not refused by halves.
const linesInQueue = 2048

// refusalDelay is how much later refusals beyond Options.MaxRefusals are answered.
const refusalDelay = time.Second

// New returns a server. Its 401 answers carry a Bearer challenge.
func New(o Options) *Server {
	o = o.withDefaults()
	s := &Server{
		edge: *o.Edge, ledgers: o.Ledgers, orgs: o.Organizations, agents: o.Agents, policies: o.Policies,
		intents: policystore.NewIntents(o.Ledgers), approvals: o.Approvals, workflows: o.Workflows,
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
	}
	s.keyTables.Register(o.Metrics)
	s.metrics = newMetrics(o.Metrics, s.pacer, s.polls, s.limit, s.evaluations)
	s.edge.Quiet = true
	s.edge.Challenge = "Bearer"
	return s
}

// handler answers a request of c, whose body is read.
type handler func(w http.ResponseWriter, r *http.Request, c caller, body []byte) error

// Routes adds the routes of the surface to r.
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
}

// permitScope returns the permission of routes of a scope.
func permitScope(scope org.Scope) edge.Permission {
	return edge.Permission{Credential: edge.IngestKey, Right: scope.String()}
}
