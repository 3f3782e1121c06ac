package guard

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

// stateResult queues the event that states a result, for Flush to send. reserved says
// that the queue holds a slot for it. The event has the same bytes each time, so a crash
// in between makes no second event.
func (g *Guard) stateResult(a *action, status string, reserved bool) error {
	if err := g.Journal.storeAction(a); err != nil {
		return err
	}
	payload := map[string]any{"action_event_id": a.Permit.EventID, "phase": event.PhaseResult, "status": status}
	if a.Result != nil {
		sum := sha256.Sum256(a.Result)
		payload["result_digest"] = hex.EncodeToString(sum[:])
	}
	envelope, err := g.signDerivedEvent(a.Key, "result", client.Event{
		ActionKind: "result", TraceID: a.Trace, Tool: a.Tool, Payload: payload,
		// The service needs parent_event_id to see that the policy is not asked again.
		Extra: map[string]any{"parent_event_id": a.Permit.EventID},
	})
	if err == nil {
		err = g.Journal.queue.enqueueEvent(envelope, reserved)
	}
	if err != nil {
		return fmt.Errorf("state result: %w", err)
	}
	a.Told = true
	return g.Journal.storeAction(a)
}

// stateDecision signs the event that states the decision on an action.
func (g *Guard) stateDecision(r *preparedAction, a *action) ([]byte, error) {
	kind, extra := "tool_call", map[string]any{}
	if a.Permit.Decision == id.Deny {
		kind = "policy_decision"
	}
	if a.Approval != nil {
		extra["approval_id"] = a.Approval.ID
	}
	if a.Permit.Unasked {
		extra["unasked"] = true
	}
	use := fmt.Sprintf("decision/%d", a.Attempt)
	a.Permit.EventID = g.eventIDFor(a.Key, use)
	return g.signDerivedEvent(a.Key, use, client.Event{
		ActionKind: kind, TraceID: r.Trace, ActorPrincipal: r.Principal, Decision: a.Permit.Decision,
		Tool: r.Tool, Payload: r.payload, Extra: extra,
	})
}

func (g *Guard) eventIDFor(key, use string) id.Event {
	name := g.Signer.Secret("aps/guard/event_id", []byte(use+"\n"+key))
	return id.Event("evt_" + hex.EncodeToString(name[:16]))
}

// signDerivedEvent signs an event whose id and salt are derived from the action's key.
func (g *Guard) signDerivedEvent(key, use string, e client.Event) ([]byte, error) {
	salt := g.Signer.Secret("aps/guard/salt", []byte(use+"\n"+key))
	e.EventID = g.eventIDFor(key, use)
	if e.Extra == nil {
		e.Extra = map[string]any{}
	}
	e.Extra["salt"] = base64.RawURLEncoding.EncodeToString(salt[:16])
	if e.ActorPrincipal == "" {
		e.ActorPrincipal = g.Principal
	}
	e.EmittedAt = id.InstantOf(time.Now())
	return g.Signer.SignEvent(e)
}

func (g *Guard) flushQueue(ctx context.Context) {
	if err := g.Flush(ctx); err != nil {
		g.OnTrouble(err)
	}
}

// Flush sends the queued events, oldest first, and stops at the first event that can't be
// sent. An event that the service refuses for good is dropped, and the error says so.
// Errors are those of client.Send and of the file system.
func (g *Guard) Flush(ctx context.Context) error {
	names, err := g.Journal.queue.queuedNames()
	if err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	var refused error
	for _, name := range names {
		envelope, err := g.Journal.queue.readQueued(name)
		if err != nil {
			return errors.Join(refused, fmt.Errorf("flush: %w", err))
		}
		if envelope == nil { // another goroutine has sent it
			continue
		}
		_, err = g.Client.Send(ctx, envelope)
		if err != nil && !client.IsRefused(err) {
			return errors.Join(refused, fmt.Errorf("flush: %w", err))
		}
		if err != nil {
			refused = errors.Join(refused, fmt.Errorf("flush: an event was refused and is dropped: %w", err))
		}
		if err := g.Journal.queue.removeQueued(name); err != nil {
			return errors.Join(refused, fmt.Errorf("flush: %w", err))
		}
	}
	return refused
}
