package ingest

import (
	"context"
	"net/http"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

const requestApprovalHeader = "X-Request-Approval"

// maxAskedInBatch bounds the approvals that one batch may request, because each needs its own append.
const maxAskedInBatch = 32

// requestsApproval reports whether a request asks for the approvals that its events need.
func requestsApproval(h http.Header, c caller) (bool, error) {
	switch values := h[requestApprovalHeader]; {
	case len(values) == 0:
		return false, nil
	case len(values) > 1 || values[0] != "1":
		return false, fault.New(fault.Invalid, "X-Request-Approval must be 1")
	case !c.Scopes.Has(org.ScopeApprovals):
		return false, errScope(org.ScopeApprovals)
	}
	return true, nil
}

// claimsIntent reports whether the event claims to be an intent.
func (in *incomingEvent) claimsIntent() bool {
	return in.envelope.Tool != "" && in.envelope.MayBeIntent() && in.envelope.Call().Phase == event.PhaseIntent
}

// answerIntents finds the decisions on intents that were stored before, and requests the approvals that intents need,
// if requested is set. An event that cannot get its approval is refused and stays stored: the same event may be sent
// again.
func (s *Server) answerIntents(ctx context.Context, c caller, events []*incomingEvent, requested bool) {
	for _, in := range events {
		decided := in.fate == replayed || in.fate == created && in.policy.Effective > id.Allow
		in.asksDecision = decided && (requested || in.claimsIntent())
	}
	s.findDecisions(ctx, c, events)
	asked := 0
	for _, in := range events {
		if !in.needsApproval() || !requested && !(c.Asks && in.asksDecision) {
			continue
		}
		if asked++; asked > maxAskedInBatch {
			in.refuseApproval(&fault.Error{Kind: fault.RateLimited, Code: "rate_limited", RetryAfter: time.Second,
				Message: "a batch may request at most 32 approvals: send the event again"})
			continue
		}
		if err := in.askApproval(ctx); err != nil {
			in.refuseApproval(err)
		}
	}
}

// findDecisions reads the decisions on replayed events whose senders ask for them.
func (s *Server) findDecisions(ctx context.Context, c caller, events []*incomingEvent) {
	var selected []*incomingEvent
	var names []id.Event
	for _, in := range events {
		if in.fate == replayed && in.envelope.Tool != "" && in.asksDecision {
			selected, names = append(selected, in), append(names, in.envelope.EventID)
		}
	}
	if len(selected) == 0 {
		return
	}
	decisions, err := s.intents.Decisions(ctx, c.Tenant, names)
	for i, in := range selected {
		if err != nil {
			in.fate, in.err = refused, edge.EndedEarly(err)
			continue
		}
		if in.decided = decisions[i]; in.decided != nil {
			in.policy = in.decided.Policy
		}
	}
}

// needsApproval reports whether the ledger decided that the stored event needs approval.
func (in *incomingEvent) needsApproval() bool {
	if in.fate != created && (in.fate != replayed || in.decided == nil) {
		return false
	}
	return in.policy.Evaluated && in.policy.Effective == id.AllowWithObligation
}

// askApproval requests the approval of a stored event, or finds the approval that was requested. An event that only
// declares the obligation gets none if the policy does not require one.
func (in *incomingEvent) askApproval(ctx context.Context) error {
	e := in.envelope
	if in.decided != nil && in.decided.Erased {
		return fault.New(fault.Conflict, "the event is erased")
	}
	subject, _ := e.OnBehalfOf() // an event that was stored earlier may have a malformed one, which counts as absent
	standing := in.standing
	if in.decided != nil {
		standing = in.decided.Standing
	}
	asked, _, err := in.server.approvals.Ask(ctx, in.caller.Tenant, approval.Question{
		Agent: e.AgentID, Tool: e.Tool, ActorType: e.ActorType, ActionKind: e.ActionKind, Payload: e.Payload,
		OnBehalfOf: subject, Standing: standing,
		Trace: e.TraceID, Principal: e.ActorPrincipal, IngestKeyID: in.caller.KeyID,
		Intent: approval.Intent{Event: e.EventID, RuleID: in.policy.RuleID, PolicyDigest: in.policy.PolicyDigest},
	})
	if fault.Is(err, fault.Invalid) && in.policy.Declared == id.AllowWithObligation {
		return nil
	}
	if err != nil {
		return err
	}
	in.asked = &asked
	return nil
}

// refuseApproval refuses an event that is stored and has no approval. A 422 would mean that nothing is stored, so it
// becomes a 409.
func (in *incomingEvent) refuseApproval(err error) {
	err = edge.EndedEarly(err)
	if cause := fault.Of(err); cause.Kind != fault.Internal {
		refusal := *cause
		refusal.Message, refusal.Err = "The event is stored without its approval: "+cause.Message, err
		switch cause.Kind {
		case fault.Invalid:
			refusal.Kind = fault.Conflict
		case fault.OutcomeUnknown:
			refusal.Message = "The event is stored, its approval may be asked for; retry with the same event_id"
		}
		if cause.Kind != fault.RateLimited {
			refusal.Code = "not_asked"
		}
		err = &refusal
	}
	in.fate, in.err = refused, err
}
