package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// describeArguments returns the members of an intent's payload that describe the arguments.
func describeArguments(a Action, arguments jsontext.Value) (map[string]jsontext.Value, error) {
	var given map[string]jsontext.Value
	if err := json.Unmarshal(arguments, &given); err != nil {
		return nil, fmt.Errorf("run action: payload: must be a JSON object: %w", err)
	}
	own := event.GuardMembers()
	for _, name := range own {
		if _, taken := given[name]; taken {
			return nil, fmt.Errorf("run action: payload: the member %s is the guard's own", name)
		}
	}
	if !a.DigestOnly {
		return recordMembers(given)
	}
	shown := make(map[string]jsontext.Value, len(a.Seen)+1)
	for _, name := range a.Seen {
		if slices.Contains(own, name) {
			return nil, fmt.Errorf("run action: payload: the member %s is the guard's own", name)
		}
		if value, ok := given[name]; ok {
			shown[name] = value
		}
	}
	sum := sha256.Sum256(arguments)
	shown["input_digest"] = jsontext.Value(`"` + hex.EncodeToString(sum[:]) + `"`)
	return recordMembers(shown)
}

// recordMembers returns the members in recorded form, if an event's payload can contain them.
func recordMembers(exact map[string]jsontext.Value) (map[string]jsontext.Value, error) {
	jcs.TagMembers(exact)
	text, err := json.Marshal(exact)
	if err == nil {
		_, err = jcs.Canonicalize(text, jcs.MaxDepth-1) // the payload is a member of the envelope
	}
	if err != nil {
		return nil, fmt.Errorf("run action: payload: %w", err)
	}
	return exact, nil
}

// intentPayload returns the payload of an intent. salt is 16 secret bytes.
func (r *preparedAction) intentPayload(callID string, salt []byte) (jsontext.Value, error) {
	members := make(map[string]jsontext.Value, len(r.shown)+3)
	for name, value := range r.shown {
		members[name] = value
	}
	for name, text := range map[string]string{
		"phase": event.PhaseIntent, "call_id": callID, "salt": hex.EncodeToString(salt),
	} {
		members[name] = jcs.AppendString(nil, text)
	}
	return jcs.Marshal(members)
}

// signIntent signs another intent of an action and stores it, so that the same bytes are retried
// after a lost answer or a crash. An unasked intent is queued in the same step.
func (g *Guard) signIntent(r *preparedAction, a *action, unasked bool) error {
	a.Attempt++
	use := fmt.Sprintf("intent/%d", a.Attempt)
	salt := g.Signer.Secret("aps/guard/payload_salt", []byte(use+"\n"+a.Key))
	payload, err := r.intentPayload(g.callIDFor(a.Key), salt[:16])
	if err != nil {
		return fmt.Errorf("sign intent: %w", err)
	}
	extra := map[string]any{}
	if unasked {
		extra["unasked"] = true
	}
	if r.Traceparent != "" {
		extra["traceparent"] = r.Traceparent
	}
	if r.OnBehalfOf != nil {
		extra["on_behalf_of"] = r.OnBehalfOf
	}
	a.Intent, err = g.signDerivedEvent(a.Key, use, client.Event{
		ActionKind: "tool_call", TraceID: r.Trace, ActorPrincipal: r.Principal, Decision: id.Allow,
		Tool: r.Tool, Payload: payload, Extra: extra,
	})
	if err != nil {
		return fmt.Errorf("sign intent: %w", err)
	}
	a.Approval, a.Permit = nil, Permit{Decision: id.Allow, EventID: g.eventIDFor(a.Key, use), Unasked: unasked}
	switch {
	case unasked:
		a.Stage = stageDeciding
		if err := g.Journal.storeWithEvent(a, a.Intent); err != nil {
			return err
		}
		a.begunEarly = false
		return nil
	case a.New: // the intent is not retried after a restart
		return nil
	}
	return g.Journal.store(a, nil)
}

func (g *Guard) callIDFor(key string) string {
	name := g.Signer.Secret("aps/guard/call_id", []byte(key))
	return "call_" + hex.EncodeToString(name[:16])
}

// intentAction returns the action that an approval of the intent must be for.
func (g *Guard) intentAction(intent []byte) (grant.Action, error) {
	e, err := event.Parse(intent, event.Options{MaxBytes: max(len(intent), 1)})
	if err != nil {
		return grant.Action{}, fmt.Errorf("read intent: %w", err)
	}
	return grant.ActionOf(e), nil
}

// nameIntent adds what a tool needs for a receipt to the permit.
func (g *Guard) nameIntent(a *action) error {
	act, err := g.intentAction(a.Intent)
	if err != nil {
		return err
	}
	a.Permit.Intent = act.Organization.String() + " " + string(act.Agent) + " " + string(a.Permit.EventID)
	a.Permit.Payload = string(act.Payload)
	return nil
}

// ErrOtherCall is returned by CheckCall.
var ErrOtherCall = grant.ErrOtherCall

// CheckCall is for tools that check grants. It returns nil if payload, for which the grant was
// given, is the payload of a call with these arguments. arguments must encode as a JSON object.
// Errors wrap ErrOtherCall. The grant's action contains the whole payload, see grant.NewAction.
func CheckCall(payload []byte, arguments any) error {
	_, err := grant.CheckCall(payload, arguments)
	return err
}
