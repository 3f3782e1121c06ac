package eventlist

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/storage"
)

// maxIdentifier bounds a text of a payload that is shown as an identifier, in bytes.
const maxIdentifier = 256

// addIdentifiers adds to acts what the record of a tool may have of their calls. It reads the envelopes of the acts and of their results.
func (r *ActReader) addIdentifiers(ctx context.Context, t id.Tenant, shown []wire.Act) error {
	if len(shown) == 0 {
		return nil
	}
	s, err := r.Events.Ledgers.State(ctx, t)
	if err != nil {
		return err
	}
	acts, results := make(map[id.Index]*wire.Act, len(shown)), make(map[id.Index][]*wire.Act)
	at := make([]id.Index, 0, 2*len(shown))
	for i := range shown {
		a := &shown[i]
		a.Identifiers = &wire.ActIdentifiers{}
		if acts[a.Index], at = a, append(at, a.Index); a.Result != nil {
			results[a.Result.Index], at = append(results[a.Result.Index], a), append(at, a.Result.Index)
		}
	}
	slices.Sort(at)
	for e, err := range r.Events.Ledgers.EventsAt(ctx, s, slices.Compact(at), storage.FieldEnvelope) {
		if err != nil {
			return err
		}
		var signed struct {
			OnBehalfOf jsontext.Value `json:"on_behalf_of"`
			Payload    jsontext.Value `json:"payload"`
		}
		if e.Envelope == nil || json.Unmarshal(e.Envelope, &signed) != nil { // erased
			continue
		}
		if a := acts[e.Index]; a != nil {
			identify(a.Identifiers, signed.Payload)
			action := grant.Action{Organization: s.Identity().Organization, Agent: a.Agent, Tool: a.Tool, OnBehalfOf: signed.OnBehalfOf, Payload: signed.Payload}
			a.Identifiers.ActionDigest = wire.Text(action.Digest().String())
		}
		for _, a := range results[e.Index] {
			var members map[string]jsontext.Value
			if json.Unmarshal(signed.Payload, &members) == nil {
				a.Identifiers.GrantNonce = shortText(members["grant_nonce"])
			}
		}
	}
	return nil
}

// identify adds the identifiers in the payload of an act, which is canonical JSON in recorded form.
func identify(found *wire.ActIdentifiers, payload jsontext.Value) {
	var members map[string]jsontext.Value
	if json.Unmarshal(jcs.UntagPayload(payload), &members) != nil {
		return
	}
	found.CallID = shortText(members["call_id"])
	if found.InputDigest = shortText(members["input_digest"]); found.InputDigest != "" {
		return
	}
	for _, own := range event.GuardMembers() {
		delete(members, own)
	}
	if arguments, err := jcs.MarshalExact(members); err == nil {
		sum := sha256.Sum256(arguments)
		found.InputDigest = wire.Text(hex.EncodeToString(sum[:]))
	}
}

// shortText returns the text of a JSON string, or "" for another value or a longer one.
func shortText(value jsontext.Value) wire.Text {
	text, isText := jcs.AppendDecoded(nil, value)
	if !isText || len(text) > maxIdentifier {
		return ""
	}
	return wire.Text(text)
}
