package policy

import (
	"crypto/sha256"
	"strconv"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Canonical returns the RFC 8785 form of the policy as it is enforced: `default`, `name`,
// `policy_id`, `rules` and `version`, with every member of every rule written out. ParseStored
// parses it to an equal policy.
func (p Policy) Canonical() []byte {
	return p.appendVersion(p.appendUpToRules(make([]byte, 0, 256+256*len(p.Rules))))
}

func (p *Policy) appendUpToRules(b []byte) []byte {
	b = jcs.AppendString(append(b, `{"default":`...), p.Default.String())
	b = jcs.AppendString(append(b, `,"name":`...), p.Name)
	b = jcs.AppendString(append(b, `,"policy_id":`...), p.ID)
	b = append(b, `,"rules":[`...)
	for i := range p.Rules {
		if i > 0 {
			b = append(b, ',')
		}
		b = p.Rules[i].appendCanonical(b)
	}
	return append(b, ']')
}

// documentSubjects is the version of documents with rules that use on_behalf_of. Others have no version, so that their digests do
// not change, and services that do not know on_behalf_of reject this one.
const documentSubjects = 2

func (p *Policy) appendVersion(b []byte) []byte {
	if p.Subjects {
		b = strconv.AppendInt(append(b, `,"v":`...), documentSubjects, 10)
	}
	b = strconv.AppendUint(append(b, `,"version":`...), p.Version, 10)
	return append(b, '}')
}

// Digest returns the policy_digest: the SHA-256 of Canonical.
func (p Policy) Digest() id.Hash { return sha256.Sum256(p.Canonical()) }

// appendCanonical appends the members in sorted order.
func (r *Rule) appendCanonical(b []byte) []byte {
	b = appendTexts(append(b, `{"agents":`...), r.Agents)
	b = jcs.AppendString(append(b, `,"decision":`...), r.Decision.String())
	b = r.Limit.appendCanonical(append(b, `,"limit":`...))
	b = jcs.AppendString(append(b, `,"mode":`...), r.Mode.String())
	b = append(b, `,"obligations":[`...)
	for i, o := range r.Obligations {
		if i > 0 {
			b = append(b, ',')
		}
		b = o.appendCanonical(b)
	}
	b = append(b, ']')
	if r.OnBehalfOf != nil {
		b = r.OnBehalfOf.appendCanonical(append(b, `,"on_behalf_of":`...))
	}
	b = jcs.AppendString(append(b, `,"on_error":`...), r.OnError.String())
	b = strconv.AppendInt(append(b, `,"priority":`...), int64(r.Priority), 10)
	b = jcs.AppendString(append(b, `,"reason":`...), r.Reason)
	b = appendTexts(append(b, `,"requires":`...), r.Requires)
	b = jcs.AppendString(append(b, `,"rule_id":`...), r.ID)
	b = jcs.AppendString(append(b, `,"tool":`...), r.Tool)
	b = appendOrNull(append(b, `,"when":`...), r.When)
	return append(b, '}')
}

// appendCanonical appends the members that are set, in sorted order.
func (s *Subject) appendCanonical(b []byte) []byte {
	before := byte('{')
	if s.Issuer != "" {
		b = jcs.AppendString(append(append(b, before), `"issuer":`...), s.Issuer)
		before = ','
	}
	if s.Subject != "" {
		b = jcs.AppendString(append(append(b, before), `"subject":`...), s.Subject)
		before = ','
	}
	if s.Verified {
		b = append(append(b, before), `"verified":true`...)
	}
	return append(b, '}')
}

func appendTexts[T ~string](b []byte, texts []T) []byte {
	b = append(b, '[')
	for i, s := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = jcs.AppendString(b, string(s))
	}
	return append(b, ']')
}

func (o Obligation) appendCanonical(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"approvals":`...), int64(o.Approvals), 10)
	// What follows is absent if it is not set, so that digests of older documents do not change.
	if o.EscalateAfterSeconds != 0 {
		b = strconv.AppendInt(append(b, `,"escalate_after_seconds":`...), int64(o.EscalateAfterSeconds), 10)
		b = jcs.AppendString(append(b, `,"escalate_to":`...), o.EscalateTo)
	}
	if o.RemindAfterSeconds != 0 {
		b = strconv.AppendInt(append(b, `,"remind_after_seconds":`...), int64(o.RemindAfterSeconds), 10)
	}
	if o.Signed {
		b = append(b, `,"signed":true`...)
	}
	b = strconv.AppendInt(append(b, `,"ttl_seconds":`...), int64(o.TTLSeconds), 10)
	b = jcs.AppendString(append(b, `,"type":`...), o.Type)
	return append(b, '}')
}
