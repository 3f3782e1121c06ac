// Package simulate tries a policy before it is active, and decides stored events again: on the
// events of a ledger, or on the documents of one event.
//
// Invariants:
//
//   - Package policy decides, with the very inputs that the service gave it. There is no second
//     evaluator.
//   - Nothing is written, and no state above the one published at the begin of a simulation is
//     read.
//   - A simulation is bounded in events and in time, takes turns with the other work of the
//     server, ends with its request, and few run at a time.
package simulate

import (
	"context"
	"iter"
	"time"

	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/storage"
)

// Bounds of a simulation.
const (
	MaxEvents  = 10_000
	maxTime    = 5 * time.Second
	maxChanges = 100                   // that are told one by one
	perTurn    = 32                    // events
	turnTime   = 20 * time.Millisecond // after which no further event is decided in a turn
	atATime    = 2                     // simulations of all organizations; one of each
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

// Report says what a policy would have done.
type Report struct {
	Begin, End id.Index // the events that were looked at, [Begin, End)
	Complete   bool     // all that were wanted; false when the time was over

	Evaluated   int // that name a tool and have an envelope
	WithoutTool int // to which no policy applies, those of the service itself among them
	Erased      int // whose envelope is gone
	Results     int // which take the decision of their intent, and are not judged

	Shadow map[string]int // how often each shadow rule would have matched

	Changed             int // whose effective decision would be another one
	Tightened, Loosened int // parts of Changed
	Changes             []Change
}

// Change is an event that would be decided otherwise.
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

// Range is the events of a simulation: the newest ones below To, at most Last.
type Range struct {
	Last int      // from 1
	To   id.Index // 0, and an index beyond the end: the end of the ledger
}

// SimulateEvents decides a range of a ledger's events again by another policy: as if it had been active
// at each, with the declared decision tightened as it was then. Limits begin at 0 with the first event.
//
// Errors are those of policy.Compile and log.State.Trusted; fault.Overloaded while other simulations
// use all slots.
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
	run := run{end: end, counters: newCounters()}
	run.report = Report{Begin: begin, End: begin, Shadow: make(map[string]int)}
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

// within returns the events of a ledger of a size, [begin, end).
func (r Range) within(size id.Index) (begin, end id.Index) {
	if end = size; r.To != 0 {
		end = min(end, r.To)
	}
	if end > id.Index(r.Last) {
		begin = end - id.Index(r.Last)
	}
	return begin, end
}

// trustedState returns the state of a ledger whose policies and events are those that hold.
func (r *Simulator) trustedState(ctx context.Context, t id.Tenant) (*log.State, error) {
	s, err := r.ledgers.State(ctx, t)
	if err == nil {
		err = s.Trusted()
	}
	return s, err
}

// compilePolicy takes a processor too, because it is as long as many events.
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
	var until time.Time // from the first event on: before, the store is waited for
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
	end      id.Index // no event from there on
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
	envelope, err := event.Parse(e.Envelope, event.Options{MaxBytes: len(e.Envelope), Server: true})
	if err != nil {
		return err
	}
	if record.Policy.Intent != "" {
		r.report.Results++
		return nil
	}
	r.report.Evaluated++
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

// inputOfEvent is the input of the policy for an event, also for an event that no policy decided.
func inputOfEvent(record *event.Record, e *event.Envelope) policy.Input {
	in := policy.Input{
		Tool: e.Tool, Agent: e.AgentID, ActorType: e.ActorType, ActionKind: e.ActionKind,
		Payload: e.Payload, Now: record.Policy.EvaluatedAt,
	}
	if !record.Policy.Evaluated {
		in.Now = record.ReceivedAt
	}
	return in
}
