package event

import "github.com/agentledger/agentledger/internal/jcs"

// field is a member that the format defines.
type field uint8

const (
	schemaVersion field = iota
	organizationID
	eventID
	traceID
	agentID
	keyID
	actorPrincipal
	emittedAt
	actorType
	actionKind
	policyDecision
	toolName
	onBehalfOf
	payload
	sigAlg
	sigValue
	fieldCount
)

// String returns the member's name on the wire.
func (f field) String() string {
	return [fieldCount]string{
		"schema_version", "organization_id", "event_id", "trace_id", "agent_id", "key_id",
		"actor_principal", "emitted_at", "actor_type", "action_kind", "policy_decision",
		"tool_name", "on_behalf_of", "payload", "sig_alg", "sig_value_b64",
	}[f]
}

// lookupField returns the field called name, or fieldCount if there is none.
func lookupField(name []byte) field {
	switch string(name) {
	case "schema_version":
		return schemaVersion
	case "organization_id":
		return organizationID
	case "event_id":
		return eventID
	case "trace_id":
		return traceID
	case "agent_id":
		return agentID
	case "key_id":
		return keyID
	case "actor_principal":
		return actorPrincipal
	case "emitted_at":
		return emittedAt
	case "actor_type":
		return actorType
	case "action_kind":
		return actionKind
	case "policy_decision":
		return policyDecision
	case "tool_name":
		return toolName
	case "on_behalf_of":
		return onBehalfOf
	case "payload":
		return payload
	case "sig_alg":
		return sigAlg
	case "sig_value_b64":
		return sigValue
	}
	return fieldCount
}

// members contains the positions of the known members of an envelope. An absent member has the zero
// span.
type members struct {
	canonical []byte
	span      [fieldCount]jcs.Member
}

func collectMembers(canonical []byte, list []jcs.Member) members {
	m := members{canonical: canonical}
	for _, one := range list {
		if f := lookupField(one.Name(canonical)); f < fieldCount {
			m.span[f] = one
		}
	}
	return m
}

// memberValue returns the canonical JSON value of f, or nil if it is absent.
func (m *members) memberValue(f field) []byte {
	if m.span[f].End == 0 {
		return nil
	}
	return m.canonical[m.span[f].Value:m.span[f].End]
}

// decodeTexts returns the text of every member that is a string, and "" for all others, since no
// rule allows an empty text. The texts share one allocation.
func (m *members) decodeTexts() (texts [fieldCount]string) {
	var buf [768]byte
	var ends [fieldCount]int
	all := buf[:0]
	for f := range fieldCount {
		all, _ = jcs.AppendDecoded(all, m.memberValue(f))
		ends[f] = len(all)
	}
	joined, start := string(all), 0
	for f, end := range ends {
		texts[f] = joined[start:end]
		start = end
	}
	return texts
}
