package policystore

import (
	"context"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Stored reads stored events. log.Ledgers implements it.
type Stored interface {
	State(ctx context.Context, t id.Tenant) (*log.State, error)
	Locate(ctx context.Context, s *log.State, events []id.Event) ([]id.Index, error)
	Event(ctx context.Context, s *log.State, at id.Index, parts storage.Fields) (storage.Event, error)
}

// Intent is a stored event that permits an action: the results of the action inherit its decision. It is immutable.
type Intent struct {
	agent  id.Agent
	tool   id.Tool
	call   string // payload.call_id; "" if there is none or the envelope is erased
	of     string // canonical on_behalf_of; "" if there is none, or if it is malformed
	policy event.Policy

	erased bool // the envelope
}

// Result is an event that claims to be the result of another one.
type Result struct {
	Agent id.Agent
	Tool  id.Tool
	Call  event.Call

	OnBehalfOf *event.OnBehalfOf // nil if it is absent or malformed
}

// ResultOf returns the result that an envelope claims to be, or nil if the event must be evaluated.
func ResultOf(e *event.Envelope) *Result {
	call, ok := e.ClaimsResult()
	if !ok {
		return nil
	}
	of, _ := e.OnBehalfOf()
	return &Result{Agent: e.AgentID, Tool: e.Tool, Call: call, OnBehalfOf: of}
}

// acceptsResult reports whether r is a result of the intent. If both have a call ID, it must be the same. If r states on whose behalf
// it is, the intent must have stated the same, because the policy decided on that.
func (i *Intent) acceptsResult(r Result) bool {
	return i.policy.Permits() && (r.OnBehalfOf == nil || i.erased || string(r.OnBehalfOf.Canonical()) == i.of) && i.agent == r.Agent && i.tool == r.Tool &&
		(i.call == "" || r.Call.ID == "" || i.call == r.Call.ID)
}

// Judgement returns the judgement of a result with a declared decision: no policy is evaluated and no limit counts it.
func (i *Intent) Judgement(r Result, declared id.Decision) Judgement {
	return Judgement{Policy: i.policy.ForResult(r.Call.Parent, declared)}
}

const (
	maxIntents = 1 << 14 // cached intents, about 500 bytes each
	maxCall    = 256     // maximum bytes of a cached call_id
	maxSubject = 1 << 10 // maximum bytes of a cached on_behalf_of
)

// Intents finds the intents of results. Intents that were recently committed here are cached; all others are read
// from their ledger. Its methods may be called concurrently.
type Intents struct {
	ledgers Stored
	known   *cache.Map[intentName, *Intent]
}

type intentName struct {
	tenant id.Tenant
	event  id.Event
}

// NewIntents returns the Intents of all ledgers.
func NewIntents(l Stored) *Intents {
	return &Intents{ledgers: l, known: cache.NewMap(cache.MapOptions[intentName, *Intent]{Limit: maxIntents})}
}

// Find returns the intent of each result, in order. It returns nil for results without an intent, which must be
// evaluated like intents. An intent is an event of the same ledger, agent and tool that was durable before the call,
// was itself evaluated and is not denied. Find returns fault.Unavailable if that cannot be determined.
func (i *Intents) Find(ctx context.Context, t id.Tenant, results []Result) ([]*Intent, error) {
	found := make([]*Intent, len(results))
	var names []id.Event
	var positions []int
	for n, r := range results {
		if known, _ := i.known.Get(intentName{t, r.Call.Parent}); known == nil {
			names, positions = append(names, r.Call.Parent), append(positions, n)
		} else if known.acceptsResult(r) {
			found[n] = known
		}
	}
	if len(names) == 0 {
		return found, nil
	}
	state, err := i.ledgers.State(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := state.Trusted(); err != nil {
		return nil, err
	}
	at, err := i.ledgers.Locate(ctx, state, names)
	if err != nil {
		return nil, err
	}
	for k, index := range at {
		if index == storage.NoIndex {
			continue
		}
		intent, err := i.readIntent(ctx, state, index)
		if err != nil {
			return nil, err
		}
		i.cacheIntent(intentName{t, names[k]}, intent)
		if n := positions[k]; intent.acceptsResult(results[n]) {
			found[n] = intent
		}
	}
	return found, nil
}

// Decided is the ledger's decision on a stored event.
type Decided struct {
	Policy   event.Policy   // of its record
	Standing event.Standing // of its record
	Erased   bool           // the envelope is erased
}

// Decisions returns the ledger's decisions on stored events, in order. It returns nil for events that the ledger does
// not have, for example because its predecessor has them, and fault.Unavailable if that cannot be determined.
func (i *Intents) Decisions(ctx context.Context, t id.Tenant, events []id.Event) ([]*Decided, error) {
	state, err := i.ledgers.State(ctx, t)
	if err != nil {
		return nil, err
	}
	at, err := i.ledgers.Locate(ctx, state, events)
	if err != nil {
		return nil, err
	}
	found := make([]*Decided, len(events))
	for n, index := range at {
		if index == storage.NoIndex {
			continue
		}
		e, err := i.ledgers.Event(ctx, state, index, storage.FieldRecord|storage.FieldEnvelope)
		if err != nil {
			return nil, err
		}
		r, err := event.ParseRecord(e.Record)
		if err != nil {
			return nil, errUnreadableIntent(err)
		}
		found[n] = &Decided{Policy: r.Policy, Standing: r.OnBehalfOf, Erased: e.Envelope == nil}
	}
	return found, nil
}

// readIntent reads an event as a possible intent.
func (i *Intents) readIntent(ctx context.Context, s *log.State, at id.Index) (*Intent, error) {
	e, err := i.ledgers.Event(ctx, s, at, storage.FieldRecord|storage.FieldEnvelope)
	if err != nil {
		return nil, err
	}
	r, err := event.ParseRecord(e.Record)
	if err != nil {
		return nil, errUnreadableIntent(err)
	}
	intent := &Intent{agent: r.AgentID, tool: e.Tool, policy: r.Policy}
	if e.Envelope == nil { // erased, so its call_id is unknown
		intent.erased = true
		return intent, nil
	}
	envelope, err := event.Parse(e.Envelope, event.Options{MaxBytes: max(len(e.Envelope), 1), Server: true})
	if err != nil {
		return nil, errUnreadableIntent(err)
	}
	of, _ := envelope.OnBehalfOf()
	intent.call, intent.of = envelope.Call().ID, string(of.Canonical())
	return intent, nil
}

func errUnreadableIntent(err error) error {
	return records.Unreadable("The intent of a result can't be read", "read intent", err)
}

// Committed caches a durable event if it may be an intent, because its result usually follows soon.
func (i *Intents) Committed(t id.Tenant, e *event.Envelope, p *event.Policy) {
	if e.Tool != "" && e.MayBeIntent() && p.Permits() {
		of, _ := e.OnBehalfOf()
		i.cacheIntent(intentName{t, e.EventID},
			&Intent{agent: e.AgentID, tool: e.Tool, call: e.Call().ID, of: string(of.Canonical()), policy: *p})
	}
}

// cacheIntent caches an intent, unless its call ID or its subject is too long.
func (i *Intents) cacheIntent(n intentName, intent *Intent) {
	if len(intent.call) > maxCall || len(intent.of) > maxSubject {
		return
	}
	intent.policy.Limits = nil // results do not need them, and they may be long
	i.known.Put(n, intent)
}
