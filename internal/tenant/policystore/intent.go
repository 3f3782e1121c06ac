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

// Stored reads stored events (package log).
type Stored interface {
	State(ctx context.Context, t id.Tenant) (*log.State, error)
	Locate(ctx context.Context, s *log.State, events []id.Event) ([]id.Index, error)
	Event(ctx context.Context, s *log.State, at id.Index, parts storage.Fields) (storage.Event, error)
}

// Intent is a stored event that permits an act: the results of the act take its
// decision. It never changes.
type Intent struct {
	agent  id.Agent
	tool   id.Tool
	call   string // payload.call_id, "" for none or when the envelope is erased
	policy event.Policy
}

// Result is an event that says to be the result of another one.
type Result struct {
	Agent id.Agent
	Tool  id.Tool
	Call  event.Call
}

// ResultOf returns the result that an envelope says to be; nil for an event that is judged
// in any case.
func ResultOf(e *event.Envelope) *Result {
	call, ok := e.ClaimsResult()
	if !ok {
		return nil
	}
	return &Result{Agent: e.AgentID, Tool: e.Tool, Call: call}
}

// acceptsResult reports whether r is a result of the intent. Where both name a call it is the same.
func (i *Intent) acceptsResult(r Result) bool {
	return i.policy.Permits() && i.agent == r.Agent && i.tool == r.Tool &&
		(i.call == "" || r.Call.ID == "" || i.call == r.Call.ID)
}

// Judgement is that of a result which declares a decision: no policy is asked and no
// limit counts it.
func (i *Intent) Judgement(r Result, declared id.Decision) Judgement {
	return Judgement{Policy: i.policy.ForResult(r.Call.Parent, declared)}
}

const (
	maxIntents = 1 << 14 // remembered, about 500 bytes each
	maxCall    = 256     // bytes of a call_id that is remembered
)

// Intents finds the intents of results. Those that landed here a moment ago are
// remembered, all others are read from their ledger. Its methods may be called
// concurrently.
type Intents struct {
	ledgers Stored
	known   *cache.Map[intentName, *Intent]
}

type intentName struct {
	tenant id.Tenant
	event  id.Event
}

// NewIntents returns the intents of all ledgers.
func NewIntents(l Stored) *Intents {
	return &Intents{ledgers: l, known: cache.NewMap(cache.MapOptions[intentName, *Intent]{Limit: maxIntents})}
}

// Find returns the intent of each result, in their order: nil for those that have none
// and are judged as intents themselves. An intent is an event of the same ledger, agent
// and tool that was durable before the call, was judged itself and is not denied.
// fault.Unavailable when that can't be told.
func (i *Intents) Find(ctx context.Context, t id.Tenant, results []Result) ([]*Intent, error) {
	found := make([]*Intent, len(results))
	var names []id.Event
	var of []int
	for n, r := range results {
		if known, _ := i.known.Get(intentName{t, r.Call.Parent}); known == nil {
			names, of = append(names, r.Call.Parent), append(of, n)
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
		i.keepIntent(intentName{t, names[k]}, intent)
		if intent.acceptsResult(results[of[k]]) {
			found[of[k]] = intent
		}
	}
	return found, nil
}

// Decided is the decision of the ledger on a stored event.
type Decided struct {
	Policy event.Policy // of its record
	Erased bool         // whether its envelope is erased
}

// Decisions returns the decisions of the ledger on stored events, in their order: nil for those that
// it does not have, for example because a predecessor has them. fault.Unavailable when that can't be told.
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
		found[n] = &Decided{Policy: r.Policy, Erased: e.Envelope == nil}
	}
	return found, nil
}

// readIntent reads an event as the intent that it may be.
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
	if e.Envelope == nil { // erased: its call_id is not known any more
		return intent, nil
	}
	envelope, err := event.Parse(e.Envelope, event.Options{MaxBytes: max(len(e.Envelope), 1), Server: true})
	if err != nil {
		return nil, errUnreadableIntent(err)
	}
	intent.call = envelope.Call().ID
	return intent, nil
}

func errUnreadableIntent(err error) error {
	return records.Unreadable("The intent of a result can't be read", "read intent", err)
}

// Landed remembers an event that is durable, if it says to be an intent: its result is
// on the way.
func (i *Intents) Landed(t id.Tenant, e *event.Envelope, p *event.Policy) {
	if e.Tool != "" && e.MayBeIntent() && p.Permits() {
		i.keepIntent(intentName{t, e.EventID}, &Intent{agent: e.AgentID, tool: e.Tool, call: e.Call().ID, policy: *p})
	}
}

// keepIntent keeps an intent, unless its call is too long.
func (i *Intents) keepIntent(n intentName, intent *Intent) {
	if len(intent.call) > maxCall {
		return
	}
	intent.policy.Limits = nil // of no use to a result, and as long as its policy has limits
	i.known.Put(n, intent)
}
