package policy

import (
	"maps"
	"slices"
	"strconv"

	"github.com/agentledger/agentledger/internal/jcs"
)

// Document returns the RFC 8785 form of the whole policy: the members of Canonical and `tests`,
// which are not part of the digest. ParseStored parses it to an equal policy.
func (p Policy) Document() []byte {
	b := p.appendUpToRules(make([]byte, 0, 256+256*(len(p.Rules)+len(p.Tests))))
	b = append(b, `,"tests":[`...)
	for i := range p.Tests {
		if i > 0 {
			b = append(b, ',')
		}
		b = p.Tests[i].appendCanonical(b)
	}
	return p.appendVersion(append(b, ']'))
}

func (t *Test) appendCanonical(b []byte) []byte {
	b = jcs.AppendString(append(b, `{"expect":{"decision":`...), t.Expect.Decision.String())
	if t.Expect.Error != nil {
		b = strconv.AppendBool(append(b, `,"error":`...), *t.Expect.Error)
	}
	if t.Expect.RuleID != "" {
		b = jcs.AppendString(append(b, `,"rule_id":`...), t.Expect.RuleID)
	}
	if t.Expect.Shadow != nil {
		b = appendTexts(append(b, `,"shadow":`...), t.Expect.Shadow)
	}
	in := &t.Input
	b = jcs.AppendString(append(b, `},"input":{"action_kind":`...), in.ActionKind)
	b = jcs.AppendString(append(b, `,"actor_type":`...), in.ActorType)
	b = jcs.AppendString(append(b, `,"agent_id":`...), string(in.Agent))
	if in.OnBehalfOf != nil {
		b = in.appendSubject(append(b, ','))
	}
	b = append(b, `,"payload":`...)
	if in.Payload == nil {
		b = append(b, "{}"...)
	}
	b = append(b, in.Payload...)
	b = jcs.AppendString(append(b, `,"tool_name":`...), string(in.Tool))
	b = append(b, `},"limits":{`...)
	for i, limit := range slices.Sorted(maps.Keys(t.Before)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = jcs.AppendString(append(jcs.AppendString(b, limit), ':'), t.Before[limit].String())
	}
	b = jcs.AppendString(append(b, `},"name":`...), t.Name)
	if in.Now != 0 {
		b = jcs.AppendString(append(b, `,"now":`...), in.Now.String())
	}
	return append(b, '}')
}
