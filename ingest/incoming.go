package ingest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
)

// replayTries bounds how often an event waits for another event with the same ID. One round is enough unless that other
// event fails.
const replayTries = 8

// eventFate is the outcome of an event so far.
type eventFate uint8

const (
	open     eventFate = iota // not decided
	replayed                  // the ledger already contained it
	created                   // it was appended
	refused
)

// incomingEvent is one event while its request is processed: it is parsed, looked up, and then appended. It must not be
// used concurrently.
type incomingEvent struct {
	server         *Server
	caller         caller
	idempotencyKey string            // "" if none
	traceparent    event.Traceparent // of the request

	standing   event.Standing // of on_behalf_of
	subjectErr error          // why it was not verified; nil without a token

	envelope *event.Envelope // set by readEvent
	form     event.Form
	policy   event.Policy        // decision of the last call of prepareAppend
	result   *policystore.Result // nil unless it claims to be the result of another event
	intent   *policystore.Intent // of a result, after it was looked up; if nil, the policy decides

	evaluation policy.Evaluation // of the last call of prepareAppend

	fate         eventFate
	receipt      log.Receipt          // if created
	asksDecision bool                 // whether the sender asks for the decision
	decided      *policystore.Decided // if replayed and the sender asks for it; may be nil
	asked        *approval.Approval   // requested by the event; may be nil
	err          error                // why it was refused
}

// readEvent parses and verifies the event in body, which it keeps. Only the agent's key is looked up: whether the event
// is stored already and what the policy decides come later.
func (in *incomingEvent) readEvent(ctx context.Context, body []byte) {
	if err := in.server.compute(ctx, in.caller, func() error { return in.parseAndVerify(ctx, body) }); err != nil {
		in.refuseWith(err)
	}
}

func (in *incomingEvent) parseAndVerify(ctx context.Context, body []byte) error {
	s, c := in.server, in.caller
	e, err := event.Parse(body, event.Options{MaxBytes: s.maxBytes, Organization: c.Organization})
	if err != nil {
		return err
	}
	if err := c.checkAgent(e.AgentID); err != nil {
		return err
	}
	in.envelope, in.result = e, policystore.ResultOf(e)

	// A key in any state verifies, because a replay is answered even if its key was revoked in the meantime.
	key, err := s.agents.SigningKey(ctx, c.state, e.AgentID, e.KeyID)
	if fault.Is(err, fault.NotFound) {
		if err := c.state.Trusted(); err != nil { // the registration of the key may be among the lost events
			return err
		}
		return fault.Wrap(fault.Invalid, "Unknown signing key", err)
	}
	if err != nil {
		return err
	}
	began := time.Now()
	form, ok := e.Verify(s.keyTables.Verifier(c.Tenant, key.Public))
	s.metrics.observeVerification(began)
	if !ok {
		return in.errInvalidSignature(body)
	}
	if form == event.FormDigest {
		s.verified.Note(key.Public, e.Digest, e.Signature)
	}
	in.form = form
	return nil
}

// errInvalidSignature contains the digest that must be signed and, if the body is not canonical, the first difference:
// many clients sign the text that their own library writes.
func (in *incomingEvent) errInvalidSignature(body []byte) error {
	details := &edge.Details{EventDigest: in.envelope.Digest}
	details.Difference, _ = jcs.FindDifference(body, in.envelope.Canonical)
	return fault.Wrap(fault.Invalid, "Invalid signature", details)
}

// findReplays looks up the open events of c and their idempotency keys.
func (s *Server) findReplays(ctx context.Context, c caller, events ...*incomingEvent) {
	events = slices.DeleteFunc(events, func(in *incomingEvent) bool { return in.fate != open })
	if len(events) == 0 {
		return
	}
	queries := make([]log.Query, len(events))
	for i, in := range events {
		queries[i] = log.Query{Event: in.envelope.EventID, Key: in.idempotencyKey, IngestKey: in.caller.KeyID,
			Digest: in.envelope.Digest}
	}
	for i, replay := range s.ledgers.Replays(ctx, c.state, queries) {
		events[i].applyReplay(replay)
	}
}

func (in *incomingEvent) applyReplay(r log.Replay) {
	switch {
	case r.Err != nil:
		in.refuseWith(r.Err)
	case r.Known:
		in.fate = replayed
		in.server.metrics.events[replayed].Inc()
	}
}

func (in *incomingEvent) refuseWith(err error) {
	in.fate, in.err = refused, edge.EndedEarly(err)
	in.server.metrics.events[refused].Inc()
}

// settleEvents appends the open events of c, in order, and returns when the outcome of each is known. It takes
// ownership of events.
func (s *Server) settleEvents(ctx context.Context, c caller, events []*incomingEvent) {
	for range replayTries {
		events = slices.DeleteFunc(events, func(in *incomingEvent) bool { return in.fate != open })
		if len(events) == 0 {
			return
		}
		for rest := events; len(rest) > 0; {
			n := countBeforeResult(rest)
			s.appendEvents(ctx, c, rest[:n])
			rest = rest[n:]
		}
	}
	for _, in := range events {
		if in.fate == open {
			in.refuseWith(&fault.Error{Kind: fault.Overloaded, Code: "overloaded", RetryAfter: time.Second,
				Message: "Too many requests for the same event"})
		}
	}
}

// appendEvents appends events together, in order.
func (s *Server) appendEvents(ctx context.Context, c caller, events []*incomingEvent) {
	events = s.findIntents(ctx, c, events)
	if len(events) == 0 {
		return
	}
	prepares := make([]log.Prepare, len(events))
	for i, in := range events {
		prepares[i] = in.prepareAppend
	}
	ctx, waiting := s.edge.Tracer.StartSpan(ctx, "append")
	outcomes := s.ledgers.AppendTo(ctx, c.state, prepares)
	waiting.End()
	for i := range outcomes {
		events[i].applyOutcome(ctx, outcomes[i])
	}
}

// applyOutcome applies the outcome of the event's append. A duplicate that is not stored stays open, because the other
// event with its ID has failed.
func (in *incomingEvent) applyOutcome(ctx context.Context, o log.Outcome) {
	switch {
	case errors.Is(o.Err, log.ErrDuplicate):
		in.server.findReplays(ctx, in.caller, in)
	case o.Err != nil:
		in.refuseWith(o.Err)
	default:
		in.fate, in.receipt = created, o.Receipts[0]
		if decided := in.receipt.Decided; decided != nil {
			in.policy = *decided
		}
		in.server.intents.Committed(in.caller.Tenant, in.envelope, &in.policy)
		in.server.metrics.events[created].Inc()
	}
}
