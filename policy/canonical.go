package policy

import (
	"crypto/sha256"
	"strconv"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Canonical returns the RFC 8785 form of the policy as it is enforced: `default`,
// `name`, `policy_id`, `rules` and `version`, with every member of every rule
// written out. Parse reads it back to an equal policy.
func (p Policy) Canonical() []byte {
	b := append(make([]byte, 0, 256+256*len(p.Rules)), `{"default":`...)
	b = jcs.AppendString(b, p.Default.String())
	b = jcs.AppendString(append(b, `,"name":`...), p.Name)
	b = jcs.AppendString(append(b, `,"policy_id":`...), p.ID)
	b = append(b, `,"rules":[`...)
	for i := range p.Rules {
		if i > 0 {
			b = append(b, ',')
		}
		b = p.Rules[i].appendCanonical(b)
	}
	b = strconv.AppendUint(append(b, `],"version":`...), p.Version, 10)
	return append(b, '}')
}

// Digest is the policy_digest: SHA-256 of Canonical.
func (p Policy) Digest() id.Hash { return sha256.Sum256(p.Canonical()) }

// appendCanonical writes the members in their sorted order. Those that are not
// supported yet have the value that says so.
func (r *Rule) appendCanonical(b []byte) []byte {
	b = append(b, `{"agents":[`...)
	for i, agent := range r.Agents {
		if i > 0 {
			b = append(b, ',')
		}
		b = jcs.AppendString(b, string(agent))
	}
	b = jcs.AppendString(append(b, `],"decision":`...), r.Decision.String())
	b = jcs.AppendString(append(b, `,"limit":null,"mode":`...), r.Mode.String())
	b = append(b, `,"obligations":[`...)
	for i, o := range r.Obligations {
		if i > 0 {
			b = append(b, ',')
		}
		b = o.appendCanonical(b)
	}
	b = jcs.AppendString(append(b, `],"on_error":`...), r.onError())
	b = strconv.AppendInt(append(b, `,"priority":`...), int64(r.Priority), 10)
	b = jcs.AppendString(append(b, `,"reason":`...), r.Reason)
	b = jcs.AppendString(append(b, `,"requires":[],"rule_id":`...), r.ID)
	b = jcs.AppendString(append(b, `,"tool":`...), r.Tool)
	return append(b, `,"when":null}`...)
}

func (o Obligation) appendCanonical(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"approvals":`...), int64(o.Approvals), 10)
	b = strconv.AppendInt(append(b, `,"ttl_seconds":`...), int64(o.TTLSeconds), 10)
	b = jcs.AppendString(append(b, `,"type":`...), o.Type)
	return append(b, '}')
}
