package guard

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

// stateResult stores the end of an action together with the event that states it, for Flush to
// send. reserved reports whether the queue has a slot for the event; if not, only the end is
// stored.
func (g *Guard) stateResult(a *action, reserved bool) error {
	statement, err := g.signResult(a, "result", a.resultStatus())
	if err != nil {
		return fmt.Errorf("state result: %w", err)
	}
	a.Stated = true
	if reserved {
		return g.Journal.store(a, statement)
	}
	if err := g.Journal.storeWithEvent(a, statement); err != nil {
		a.Stated = false
		if errors.Is(err, ErrQueueFull) {
			err = errors.Join(err, g.Journal.store(a, nil))
		}
		return fmt.Errorf("state result: %w", err)
	}
	return nil
}

// signResult signs a result of the intent. The event has the same ID each time, so a crash in
// between does not create a second event.
func (g *Guard) signResult(a *action, use, status string) ([]byte, error) {
	payload := map[string]any{}
	if len(a.Members) > 0 {
		if err := json.Unmarshal(a.Members, &payload); err != nil {
			return nil, err
		}
	}
	payload["phase"], payload["call_id"], payload["status"] = event.PhaseResult, g.callIDFor(a.Key), status
	if a.Result != nil {
		sum := sha256.Sum256(a.Result)
		payload["output_digest"] = hex.EncodeToString(sum[:])
	}
	if a.DurationMS != nil {
		payload["duration_ms"] = *a.DurationMS
	}
	if a.Approval != nil {
		payload["approval_id"] = a.Approval.ID
	}
	if nonce := grantNonce(a.Permit.Grant); nonce != "" {
		payload["grant_nonce"] = nonce
	}
	// With parent_event_id the service does not evaluate the policy again.
	extra := map[string]any{"parent_event_id": a.Permit.EventID}
	if a.Traceparent != "" {
		extra["traceparent"] = a.Traceparent
	}
	if a.OnBehalfOf != nil {
		extra["on_behalf_of"] = a.OnBehalfOf
	}
	return g.signDerivedEvent(a.Key, use, client.Event{
		ActionKind: "tool_call", TraceID: a.Trace, Tool: a.Tool, Payload: payload, Extra: extra,
	})
}

// grantNonce returns the nonce of a grant, or "" for a text of another form. It does not verify the
// signature, because the tool that accepts the grant does.
func grantNonce(note string) string {
	const header, nonce, lines = 0, 6, 9
	text := strings.SplitN(note, "\n", lines+1)
	if len(text) <= lines || text[header] != "agentledger/grant/v1" {
		return ""
	}
	return text[nonce]
}

func (g *Guard) eventIDFor(key, use string) id.Event {
	name := g.Signer.Secret("aps/guard/event_id", []byte(use+"\n"+key))
	return id.Event("evt_" + hex.EncodeToString(name[:16]))
}

// signDerivedEvent signs an event whose ID and salt are derived from the action's key.
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
