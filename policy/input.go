package policy

import (
	"crypto/sha256"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Input is what a decision is about: Tool and Agent, and what the input_digest
// commits to besides. Tool and Agent must be well-formed; an empty
// tool matches no rule.
type Input struct {
	Tool       id.Tool
	Agent      id.Agent
	ActorType  string
	ActionKind string
	Payload    []byte     // canonical JSON object; nil is {}
	Now        id.Instant // recorded as evaluated_at
}

// InputDigest is the input_digest: SHA-256 of the RFC 8785 form of action_kind,
// actor_type, agent_id, payload and tool_name.
func InputDigest(in Input) id.Hash {
	payload := in.Payload
	if payload == nil {
		payload = []byte("{}")
	}
	var buffer [512]byte
	h := sha256.New()
	b := jcs.AppendString(append(buffer[:0], `{"action_kind":`...), in.ActionKind)
	b = jcs.AppendString(append(b, `,"actor_type":`...), in.ActorType)
	b = jcs.AppendString(append(b, `,"agent_id":`...), string(in.Agent))
	h.Write(append(b, `,"payload":`...))
	h.Write(payload)
	b = jcs.AppendString(append(b[:0], `,"tool_name":`...), string(in.Tool))
	h.Write(append(b, '}'))
	return id.Hash(h.Sum(buffer[:0]))
}
