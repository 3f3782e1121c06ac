package event

import (
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Text returns the canonical JSON of the record.
func (r *Record) Text() []byte {
	f := r.Frame()
	return f.Fill(r.ReceivedAt, r.SequenceNum)
}

// Frame is a rendered record without the two members that only the sequencer can supply. The
// caller's goroutine renders it, so that the sequencer only has to fill it in and hash it.
type Frame struct {
	text []byte // the text before and after the gap; after Fill also what is between them
	cut  int    // length of the text before the gap
	tail int    // length of the text after the gap
}

const frameGap = `","sequence_num":`

// maxFilling is the maximum length of what fills the gap, in bytes: a time, the text after it and a
// number.
const maxFilling = 24 + len(frameGap) + 20

// Frame renders r without received_at and sequence_num.
func (r *Record) Frame() Frame {
	b := make([]byte, 0, r.estimateLength())
	b = appendMember(b, `{"agent_id":`, string(r.AgentID))
	b = appendMember(b, `,"custody":`, string(r.Custody))
	b = appendHash(b, `,"event_digest":`, r.EventDigest)
	b = appendMember(b, `,"event_id":`, string(r.EventID))
	b = appendNullable(b, `,"ingest_key_id":`, r.IngestKeyID)
	b = appendMember(b, `,"key_id":`, string(r.KeyID))
	if r.OnBehalfOf != "" {
		b = appendMember(b, `,"on_behalf_of":`, string(r.OnBehalfOf))
	}
	b = append(r.OrganizationID.AppendTo(append(b, `,"organization_id":"`...)), '"')
	b = appendMember(b, `,"origin":`, string(r.Origin))
	b = r.Policy.appendCanonical(append(b, `,"policy":`...))
	b = appendMember(b, `,"public_key":`, r.PublicKey)
	b = append(b, `,"received_at":"`...)
	cut := len(b)
	b = appendMember(b, `,"sig_form":`, r.SigForm)
	b = appendMember(b, `,"sig_value_b64":`, r.SigValueB64)
	b = appendMember(b, `,"signer":`, string(r.Signer))
	if r.Traceparent != (Traceparent{}) {
		b = appendMember(b, `,"traceparent":`, r.Traceparent.String())
	}
	b = append(b, `,"v":1}`...)
	return Frame{text: b, cut: cut, tail: len(b) - cut}
}

// estimateLength returns the maximum length in bytes of a record with the frame of r, provided that
// no text of r needs an escape.
func (r *Record) estimateLength() int {
	const names = 800 // member names with hashes, times, numbers and the longest words
	p := &r.Policy
	length := 0
	if r.Traceparent != (Traceparent{}) {
		length = len(`,"traceparent":""`) + len("00-") + 2*len(r.Traceparent.Trace) + 2*len(r.Traceparent.Span) + len("--01")
	}
	if r.OnBehalfOf != "" {
		length += len(`,"on_behalf_of":""`) + len(r.OnBehalfOf)
	}
	return length + names + len(r.AgentID) + len(r.EventID) + len(r.KeyID) + len(r.Origin) + len(r.PublicKey) +
		len(r.SigValueB64) + len(r.IngestKeyID) + len(p.PolicyID) + len(p.RuleID) + len(p.Engine) + len(p.Limits) +
		len(p.ApprovalID) + len(p.Intent)
}

// Len returns the maximum length in bytes of a record with the frame f.
func (f Frame) Len() int { return f.cut + f.tail + maxFilling }

// AppendTo appends the whole record to dst.
func (f Frame) AppendTo(dst []byte, received id.Instant, seq uint64) []byte {
	dst = append(dst, f.text[:f.cut]...)
	dst = appendFilling(dst, received, seq)
	return append(dst, f.text[len(f.text)-f.tail:]...)
}

// Fill returns the whole record. The first call renders it in the memory of f if the capacity
// suffices; later calls allocate, so the results of earlier calls remain valid. Copies of a Frame
// share this memory: after Fill, only f itself may be used.
func (f *Frame) Fill(received id.Instant, seq uint64) []byte {
	if filled := len(f.text) > f.cut+f.tail; filled || cap(f.text) < f.Len() {
		return slices.Clip(f.AppendTo(make([]byte, 0, f.Len()), received, seq))
	}
	var buf [maxFilling]byte
	filling := appendFilling(buf[:0], received, seq)
	f.text = slices.Insert(f.text, f.cut, filling...)
	return slices.Clip(f.text)
}

// appendFilling appends the members that fill the gap.
func appendFilling(b []byte, received id.Instant, seq uint64) []byte {
	b = append(received.AppendTo(b), frameGap...)
	return strconv.AppendUint(b, seq, 10)
}

func (p *Policy) appendCanonical(b []byte) []byte {
	b = appendNullable(b, `{"approval_id":`, p.ApprovalID)
	b = appendMember(b, `,"declared":`, p.Declared.String())
	b = appendMember(b, `,"effective":`, p.Effective.String())
	b = appendNullable(b, `,"engine":`, p.Engine)
	b = append(b, `,"evaluated":`...)
	b = strconv.AppendBool(b, p.Evaluated)
	b = appendNullableInstant(b, `,"evaluated_at":`, p.EvaluatedAt)
	b = appendNullableHash(b, `,"input_digest":`, p.InputDigest)
	if p.Intent != "" {
		b = appendMember(b, `,"intent":`, string(p.Intent))
	}
	b = append(append(b, `,"limits":`...), p.limitsText()...)
	b = appendNullableHash(b, `,"policy_digest":`, p.PolicyDigest)
	b = appendNullable(b, `,"policy_id":`, p.PolicyID)
	b = append(b, `,"policy_version":`...)
	if p.PolicyVersion == 0 {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendUint(b, p.PolicyVersion, 10)
	}
	b = appendNullable(b, `,"rule_id":`, p.RuleID)
	return append(b, '}')
}

func (p *Policy) limitsText() string {
	switch {
	case p.Limits != nil:
		return string(p.Limits)
	case p.Evaluated:
		return "[]"
	}
	return "null"
}

func appendMember(b []byte, name, value string) []byte {
	return jcs.AppendString(append(b, name...), value)
}

func appendNullable(b []byte, name, value string) []byte {
	if value == "" {
		return append(append(b, name...), "null"...)
	}
	return appendMember(b, name, value)
}

func appendHash(b []byte, name string, h id.Hash) []byte {
	b = append(append(b, name...), '"')
	return append(hex.AppendEncode(b, h[:]), '"')
}

func appendNullableHash(b []byte, name string, h id.Hash) []byte {
	if h == (id.Hash{}) {
		return appendNullable(b, name, "")
	}
	return appendHash(b, name, h)
}

func appendNullableInstant(b []byte, name string, i id.Instant) []byte {
	if i == 0 {
		return appendNullable(b, name, "")
	}
	b = append(append(b, name...), '"')
	return append(i.AppendTo(b), '"')
}
