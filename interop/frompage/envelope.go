package frompage

import (
	"cmp"
	"maps"
)

// envelope contains the members of an envelope that verdicts use.
type envelope struct {
	organizationID, eventID, agentID, keyID, decision string
	signedContent                                     string
	namesTool                                         bool
	phase, parent                                     string // empty: absent, or not a text
}

// readEnvelope reads a text by "The envelope". Members that are not in the table are allowed.
func readEnvelope(text string) (envelope, bool) {
	v, ok := readCanonical(text)
	if !ok || !envelopeTable().holds(v) || !(table{"tool_name": tool}).ifThere(v).holds(v) {
		return envelope{}, false
	}
	member := func(name string) string { return v.object[name].text }
	_, namesTool := v.object["tool_name"]
	payload := v.object["payload"].object
	return envelope{
		organizationID: member("organization_id"),
		eventID:        member("event_id"),
		agentID:        member("agent_id"),
		keyID:          member("key_id"),
		decision:       member("policy_decision"),
		signedContent:  signedContent(v),
		namesTool:      namesTool,
		phase:          payload["phase"].text,
		parent:         cmp.Or(member("parent_event_id"), payload["parent_event_id"].text),
	}, true
}

// envelopeTable is the table of "The envelope" except for tool_name, which may be absent.
func envelopeTable() table {
	return table{
		"schema_version":  one,
		"organization_id": uuid,
		"event_id":        id,
		"trace_id":        id,
		"agent_id":        agentID,
		"key_id":          keyID,
		"emitted_at":      moment,
		"actor_type":      token,
		"actor_principal": principal,
		"action_kind":     token,
		"policy_decision": decision(),
		"payload":         object,
		"sig_alg":         oneOf("ed25519"),
		"sig_value_b64":   signature,
	}
}

// signedContent implements "Signed content": the RFC 8785 form without the two members of the signature.
func signedContent(v value) string {
	rest := maps.Clone(v.object)
	delete(rest, "sig_alg")
	delete(rest, "sig_value_b64")
	return canonicalForm(value{kind: isObject, object: rest})
}

// isResultOf implements condition 6 of envelope_ok.
func (e envelope) isResultOf(intent string) bool {
	return e.namesTool && e.phase == "result" && e.parent == intent && id(value{kind: isText, text: intent})
}

// digest implements "event_digest", with the envelope's own key_id.
func (e envelope) digest() string {
	return hashOf("APS1\n" + e.keyID + "\n" + e.signedContent)
}
