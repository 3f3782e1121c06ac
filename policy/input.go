package policy

import (
	"crypto/sha256"
	"strconv"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/policy/internal/condition"
)

// Input is what a policy decides on: Tool and Agent, and the other members that the input_digest
// commits to. Tool, Agent and OnBehalfOf MUST be well-formed; an empty tool matches no rule.
type Input struct {
	Tool       id.Tool
	Agent      id.Agent
	ActorType  string
	ActionKind string
	OnBehalfOf *event.OnBehalfOf // nil if the event does not state it, or if it is malformed
	Verified   bool              // whether the service verified OnBehalfOf; false without it
	Payload    []byte            // canonical JSON object; nil is {}
	Now        id.Instant        // recorded as evaluated_at
}

// InputDigest returns the input_digest: the SHA-256 of the RFC 8785 form of action_kind, actor_type, agent_id, payload and tool_name,
// and, if and only if in has a subject, of on_behalf_of and on_behalf_of_verified.
func InputDigest(in Input) id.Hash {
	payload := in.Payload
	if payload == nil {
		payload = []byte("{}")
	}
	if len(payload) > usualInput-512 || in.OnBehalfOf != nil {
		return digestInParts(in, payload)
	}
	var buf [usualInput]byte
	b := append(appendBeforePayload(buf[:0], in), payload...)
	return sha256.Sum256(appendAfterPayload(b, in))
}

// usualInput is the length in bytes up to which the digest of an input needs no allocation.
const usualInput = 2048

// digestInParts computes the digest without copying the payload.
func digestInParts(in Input, payload []byte) id.Hash {
	h := sha256.New()
	b := appendBeforePayload(make([]byte, 0, 512), in)
	h.Write(b)
	h.Write(payload)
	h.Write(appendAfterPayload(b[:0], in))
	return id.Hash(h.Sum(nil))
}

func appendBeforePayload(b []byte, in Input) []byte {
	b = jcs.AppendString(append(b, `{"action_kind":`...), in.ActionKind)
	b = jcs.AppendString(append(b, `,"actor_type":`...), in.ActorType)
	b = jcs.AppendString(append(b, `,"agent_id":`...), string(in.Agent))
	if in.OnBehalfOf != nil {
		b = in.appendSubject(append(b, ','))
	}
	return append(b, `,"payload":`...)
}

func appendAfterPayload(b []byte, in Input) []byte {
	return append(jcs.AppendString(append(b, `,"tool_name":`...), string(in.Tool)), '}')
}

// appendSubject appends the members on_behalf_of and on_behalf_of_verified.
func (in *Input) appendSubject(b []byte) []byte {
	b = append(append(b, `"on_behalf_of":`...), in.OnBehalfOf.Canonical()...)
	return strconv.AppendBool(append(b, `,"on_behalf_of_verified":`...), in.Verified)
}

// variables returns the members under the names that conditions use, without the payload.
func (in *Input) variables() condition.Variables {
	v := condition.Variables{Tool: in.Tool, Agent: in.Agent, ActorType: in.ActorType, ActionKind: in.ActionKind, Now: in.Now}
	if of := in.OnBehalfOf; of != nil {
		v.OnBehalfOf = &condition.Subject{Issuer: of.Issuer, Subject: of.Subject, Verified: in.Verified}
	}
	return v
}
