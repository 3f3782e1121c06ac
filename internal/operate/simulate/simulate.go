// Package simulate tries a policy before it is active, and decides stored events again: on the events of a ledger, or
// on the documents of one event. It hides how events are read and how a simulation shares the processor with other
// requests.
//
// Invariants:
//
//   - Package policy decides, with exactly the inputs that the service would give it. There is no second evaluator.
//   - Nothing is written, and no state newer than the published one at the start of a simulation is read.
//   - A simulation is bounded in events and in time, shares the processors fairly with other requests, ends with its
//     request, and only a few run concurrently.
package simulate

import (
	"bytes"
	"context"
	"iter"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/storage"
)

// Limits of a simulation.
const (
	MaxEvents  = 10_000
	maxTime    = 5 * time.Second
	maxChanges = 100                   // listed individually
	perTurn    = 32                    // events
	turnTime   = 20 * time.Millisecond // after which a turn ends
	atATime    = 2                     // concurrent simulations, one for each organization
)

// Ledgers is the part of package log that simulations need.
type Ledgers interface {
	State(ctx context.Context, t id.Tenant) (*log.State, error)
	Events(ctx context.Context, s *log.State, begin, end id.Index, parts storage.Fields) iter.Seq2[storage.Event, error]
}

// Options configure New. Ledgers is required.
type Options struct {
	Ledgers    Ledgers
	Processors *admission.FairQueue // shared with the other work of the server; default: its own
	Clock      func() time.Time     // default: time.Now
}

// Simulator runs simulations. Its methods may be called concurrently.
type Simulator struct {
	ledgers    Ledgers
	processors *admission.FairQueue
	clock      func() time.Time
	limit      *admission.Limit
}

// New returns the simulator of a service.
func New(o Options) *Simulator {
	if o.Processors == nil {
		o.Processors = admission.New(1).Processors
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Simulator{
		ledgers:    o.Ledgers,
		processors: o.Processors,
		clock:      o.Clock,
		limit:      admission.NewLimit(atATime, 1),
	}
}

// Report describes what a policy would have done.
type Report struct {
	Begin, End id.Index // the examined events, [Begin, End)
	Complete   bool     // false if the time ran out

	Evaluated   int // events with a tool and an envelope
	WithoutTool int // events to which no policy applies, including the service's own
	Erased      int // events whose envelope was erased
	Results     int // results, which inherit the decision of their intent and are not evaluated

	Shadow map[string]int // how often each shadow rule would have matched

	Changed             int // events with a different effective decision
	Tightened, Loosened int // subsets of Changed
	Changes             []Change

	NowAllowed, NowAsked, NowDenied int // Changed by the decision that would take effect

	// Seen contains the names of the members of the evaluated payloads by tool, for at most MaxSeenTools tools. A tool whose payloads have
	// more than 64 names, or long ones, has none.
	Seen map[id.Tool]map[string]bool
}

// Bounds of Seen.
const (
	MaxSeenTools = 200
	maxSeenNames = 64 // of a tool
	maxSeenName  = 64 // bytes
)

// notePayload adds the names of the members of a payload to Seen.
func (r *Report) notePayload(tool id.Tool, payload []byte) {
	names, known := r.Seen[tool]
	if !known && len(r.Seen) == MaxSeenTools || known && names == nil {
		return
	}
	if names == nil {
		names = make(map[string]bool)
	}
	d := jsontext.NewDecoder(bytes.NewReader(payload))
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() == '"' {
		var token jsontext.Token
		if token, err = d.ReadToken(); err != nil {
			break
		}
		name := token.String()
		names[name] = true
		if len(names) > maxSeenNames || len(name) > maxSeenName {
			names = nil
			break
		}
		err = d.SkipValue()
	}
	r.Seen[tool] = names
}

// Change is an event that would be decided differently.
type Change struct {
	Sequence       uint64
	Event          id.Event
	Agent          id.Agent
	Tool           id.Tool
	Recorded       id.Decision // the decision that took effect
	RecordedPolicy string
	RecordedRule   string
	Simulated      id.Decision // the decision that would take effect
	Rule           string
	Reason         string
	ReceivedAt     id.Instant
}

// Range selects the events of a simulation: the last ones before To, at most Last.
type Range struct {
	Last int      // from 1
	To   id.Index // 0 or an index beyond the end means the end of the ledger

	Since id.Instant // events received earlier are skipped; 0: none
}

// SimulateEvents decides a range of a ledger's events again with another policy, as if it had been active at each of
// them, and tightens each declared decision as it was then. Limits start at 0 with the first event.
//
// It returns the errors of policy.Compile and log.State.Trusted, and fault.Overloaded while other simulations use all
// slots.
func (r *Simulator) SimulateEvents(ctx context.Context, t id.Tenant, p policy.Policy, of Range) (Report, error) {
	if err := r.limit.Acquire(t, 1); err != nil {
		return Report{}, err
	}
	defer r.limit.Release(t, 1)
	state, err := r.trustedState(ctx, t)
	if err != nil {
		return Report{}, err
	}
	begin, end := of.within(state.Size())
	run := run{end: end, since: of.Since, counters: newCounters()}
	run.report = Report{Begin: begin, End: begin, Shadow: make(map[string]int), Seen: make(map[id.Tool]map[string]bool)}
	if run.policy, err = r.compilePolicy(ctx, t, p); err != nil {
		return Report{}, err
	}
	until := r.clock().Add(maxTime)
	for run.report.End < end && r.clock().Before(until) {
		if err := r.simulateTurn(ctx, t, state, &run); err != nil {
			return Report{}, err
		}
	}
	run.report.Complete = run.report.End == end
	return run.report, nil
}

// within returns the range [begin, end) of the events of a ledger with the given size.
func (r Range) within(size id.Index) (begin, end id.Index) {
	if end = size; r.To != 0 {
		end = min(end, r.To)
	}
	if end > id.Index(r.Last) {
		begin = end - id.Index(r.Last)
	}
	return begin, end
}

// trustedState returns the state of a ledger if its policies and events can be trusted.
func (r *Simulator) trustedState(ctx context.Context, t id.Tenant) (*log.State, error) {
	s, err := r.ledgers.State(ctx, t)
	if err == nil {
		err = s.Trusted()
	}
	return s, err
}

// compilePolicy compiles a policy. It acquires a processor, because it takes as long as many events.
func (r *Simulator) compilePolicy(ctx context.Context, t id.Tenant, p policy.Policy) (*policy.Compiled, error) {
	tenant := admission.TenantOf(t)
	if err := r.processors.Acquire(ctx, tenant, 1); err != nil {
		return nil, err
	}
	defer r.processors.Release(tenant, 1)
	return policy.CompileWithin(ctx, p)
}

// simulateTurn decides a few events.
func (r *Simulator) simulateTurn(ctx context.Context, t id.Tenant, state *log.State, run *run) error {
	tenant := admission.TenantOf(t)
	if err := r.processors.Acquire(ctx, tenant, 1); err != nil {
		return err
	}
	defer r.processors.Release(tenant, 1)
	var until time.Time // starts at the first event, because before it the store is slow
	end := min(run.report.End+perTurn, run.end)
	for e, err := range r.ledgers.Events(ctx, state, run.report.End, end, storage.FieldRecord|storage.FieldEnvelope) {
		if err == nil {
			err = run.simulateEvent(ctx, e)
		}
		if err != nil {
			return err
		}
		run.report.End++
		if until.IsZero() {
			until = r.clock().Add(turnTime)
		}
		if r.clock().After(until) {
			return nil
		}
	}
	return nil
}

// run is one simulation.
type run struct {
	end      id.Index   // index after the last event
	since    id.Instant // earlier events are skipped
	policy   *policy.Compiled
	counters *counters
	report   Report
}

func (r *run) simulateEvent(ctx context.Context, e storage.Event) error {
	switch {
	case e.Tool == "":
		r.report.WithoutTool++
		return nil
	case e.Envelope == nil:
		r.report.Erased++
		return nil
	}
	record, err := event.ParseRecord(e.Record)
	if err != nil {
		return err
	}
	if record.ReceivedAt < r.since {
		return nil
	}
	envelope, err := event.Parse(e.Envelope, event.Options{MaxBytes: len(e.Envelope), Server: true})
	if err != nil {
		return err
	}
	if record.Policy.Intent != "" {
		r.report.Results++
		return nil
	}
	r.report.Evaluated++
	r.report.notePayload(envelope.Tool, envelope.Payload)
	evaluation, err := policystore.Apply(ctx, r.policy, inputOfEvent(&record, envelope))
	if err != nil {
		return err
	}
	outcome := evaluation.Settle(func(c *policy.Claim) bool { return r.counters.exceedsLimit(c, record.ReceivedAt) })
	for _, rule := range outcome.Shadow {
		r.report.Shadow[rule]++
	}
	effective := outcome.Effective(record.Policy.Declared)
	if effective != id.Deny {
		r.counters.addClaims(evaluation.Claims, record.ReceivedAt)
	}
	if effective != record.Policy.Effective {
		r.noteChange(&record, envelope, effective, &outcome)
	}
	return nil
}

func (r *run) noteChange(record *event.Record, envelope *event.Envelope, effective id.Decision, o *policy.Outcome) {
	r.report.Changed++
	if effective > record.Policy.Effective {
		r.report.Tightened++
	} else {
		r.report.Loosened++
	}
	switch effective {
	case id.Allow:
		r.report.NowAllowed++
	case id.Deny:
		r.report.NowDenied++
	default:
		r.report.NowAsked++
	}
	if len(r.report.Changes) == maxChanges {
		return
	}
	r.report.Changes = append(r.report.Changes, Change{
		Sequence: record.SequenceNum, Event: record.EventID,
		Agent: record.AgentID, Tool: envelope.Tool, ReceivedAt: record.ReceivedAt,
		Recorded: record.Policy.Effective, RecordedPolicy: record.Policy.PolicyID, RecordedRule: record.Policy.RuleID,
		Simulated: effective, Rule: o.RuleID, Reason: o.Reason,
	})
}

// inputOfEvent returns the policy input for an event, even if no policy decided it.
func inputOfEvent(record *event.Record, e *event.Envelope) policy.Input {
	now := record.Policy.EvaluatedAt
	if !record.Policy.Evaluated {
		now = record.ReceivedAt
	}
	return policystore.InputOf(e, record.OnBehalfOf, now)
}
