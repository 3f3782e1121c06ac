package ingest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/log"
)

// replayTries bounds how often an event waits for another one of its name. One
// round is enough unless that other one fails.
const replayTries = 8

// fate is what has become of an event.
type fate uint8

const (
	open     fate = iota // nothing yet
	replayed             // it was in the ledger before
	created              // it is in the ledger now
	refused
)

// intake is one event on its way from its text to its answer: it is read and recalled,
// then settled. It is used by one goroutine at a time.
type intake struct {
	server         *Server
	caller         caller
	idempotencyKey string // "" for none

	envelope *event.Envelope // once it is read
	form     event.Form
	policy   event.Policy        // what the last call of prepare decided
	result   *policystore.Result // nil unless it says to be the result of another event
	intent   *policystore.Intent // of a result, once it was looked for; nil: it is judged

	fate    fate
	receipt log.Receipt // of a created one
	err     error       // why it was refused
}

// read takes the event's text and makes the checks that need nothing of the
// ledger: form and signature. It keeps body.
func (in *intake) read(ctx context.Context, body []byte) {
	if err := in.parse(ctx, body); err != nil {
		in.refuse(err)
	}
}

func (in *intake) parse(ctx context.Context, body []byte) error {
	if err := in.server.control.Processors.Acquire(ctx, in.caller.tenant(), 1); err != nil {
		return err
	}
	defer in.server.control.Processors.Release(in.caller.tenant(), 1)
	e, err := event.Parse(body, event.Options{MaxBytes: in.server.maxBytes, Organization: in.caller.Organization})
	if err != nil {
		return err
	}
	if err := in.caller.speaksFor(e.AgentID); err != nil {
		return err
	}
	in.envelope = e
	in.result = policystore.ResultOf(e)
	in.form, err = in.verify(ctx)
	return err
}

// verify finds the key that the envelope names, in whatever state it is, and
// checks the signature.
func (in *intake) verify(ctx context.Context) (event.Form, error) {
	key, err := in.server.agents.SigningKey(ctx, in.caller.state, in.envelope.AgentID, in.envelope.KeyID)
	if fault.Is(err, fault.NotFound) {
		if err := in.caller.state.Trusted(); err != nil { // the key may have been registered in what was lost
			return 0, err
		}
		return 0, fault.Wrap(fault.Invalid, "Unknown signing key", err)
	}
	if err != nil {
		return 0, err
	}
	began := time.Now()
	form, ok := in.envelope.Verify(key.Public)
	in.server.metrics.verified(began)
	if !ok {
		return 0, fault.New(fault.Invalid, "Invalid signature")
	}
	return form, nil
}

// recall looks which of the open events of c, or their idempotency keys, are known.
func (s *Server) recall(ctx context.Context, c caller, events ...*intake) {
	events = slices.DeleteFunc(events, func(in *intake) bool { return in.fate != open })
	if len(events) == 0 {
		return
	}
	asked := make([]log.Asked, len(events))
	for i, in := range events {
		asked[i] = log.Asked{Event: in.envelope.EventID, Key: in.idempotencyKey, IngestKey: in.caller.KeyID, Digest: in.envelope.Digest}
	}
	for i, replay := range s.ledgers.Replays(ctx, c.Tenant, asked) {
		events[i].recalled(replay)
	}
}

func (in *intake) recalled(r log.Replay) {
	switch {
	case r.Err != nil:
		in.refuse(r.Err)
	case r.Known:
		in.fate = replayed
		in.server.metrics.events[replayed].Inc()
	}
}

func (in *intake) refuse(err error) {
	in.fate, in.err = refused, edge.EndedEarly(err)
	in.server.metrics.events[refused].Inc()
}

// settle brings the events of c that are still open into its ledger, in their
// order, and returns when the fate of each is known. It takes events over.
func (s *Server) settle(ctx context.Context, c caller, events []*intake) {
	for range replayTries {
		events = slices.DeleteFunc(events, func(in *intake) bool { return in.fate != open })
		if len(events) == 0 {
			return
		}
		for rest := events; len(rest) > 0; {
			n := together(rest)
			s.appendEvents(ctx, c, rest[:n])
			rest = rest[n:]
		}
	}
	for _, in := range events {
		if in.fate == open {
			in.refuse(&fault.Error{Kind: fault.Overloaded, Code: "overloaded", RetryAfter: time.Second,
				Message: "Too many requests for the same event"})
		}
	}
}

// appendEvents brings events into the ledger of c at once, in their order.
func (s *Server) appendEvents(ctx context.Context, c caller, events []*intake) {
	events = s.findIntents(ctx, c, events)
	if len(events) == 0 {
		return
	}
	prepares := make([]log.Prepare, len(events))
	for i, in := range events {
		prepares[i] = in.prepare
	}
	ctx, waiting := s.edge.Tracer.StartSpan(ctx, "append")
	outcomes := s.ledgers.AppendAll(ctx, c.Tenant, prepares)
	waiting.End()
	for i := range outcomes {
		events[i].land(ctx, outcomes[i])
	}
}

// land takes what became of the event's submission. One whose name is taken stays
// open if it is not known all the same: what had taken the name has failed.
func (in *intake) land(ctx context.Context, o log.Outcome) {
	switch {
	case errors.Is(o.Err, log.ErrDuplicate):
		in.server.recall(ctx, in.caller, in)
	case o.Err != nil:
		in.refuse(o.Err)
	default:
		in.fate, in.receipt = created, o.Receipts[0]
		if decided := in.receipt.Decided; decided != nil {
			in.policy = *decided
		}
		in.server.intents.Landed(in.caller.Tenant, in.envelope, &in.policy)
		in.server.metrics.events[created].Inc()
	}
}
