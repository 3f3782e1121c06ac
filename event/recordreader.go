package event

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/id"
)

// readPlainRecord parses a record in the form that the service writes nearly always: in the order
// of Frame, in printable ASCII without escapes. It takes half the time of a decoder. It renders the
// record again and compares the texts, so a decoder accepts every record that it accepts. A text
// that it does not accept may still be a record.
func readPlainRecord(text []byte) (r Record, accepted bool) {
	for _, c := range text {
		if c < ' ' || c > '~' || c == '\\' {
			return Record{}, false
		}
	}
	t := plainText{rest: string(text)}
	t.readRecord(&r)
	if t.failed || len(t.rest) > 0 || r.checkGrammars() != nil || !bytes.Equal(r.Text(), text) {
		return Record{}, false
	}
	return r, true
}

// plainText is a text without escapes that is consumed from its front.
type plainText struct {
	rest   string
	failed bool // an expected text was missing; later values are meaningless
}

// readRecord reads the members in the order of Frame.
func (t *plainText) readRecord(r *Record) {
	r.AgentID = id.Agent(t.readText(`{"agent_id":`))
	r.Custody = Custody(t.readText(`,"custody":`))
	readMember(t, `,"event_digest":`, &r.EventDigest, id.ParseHash)
	r.EventID = id.Event(t.readText(`,"event_id":`))
	r.IngestKeyID = t.readNullable(`,"ingest_key_id":`)
	r.KeyID = id.Key(t.readText(`,"key_id":`))
	if strings.HasPrefix(t.rest, `,"on_behalf_of":`) {
		r.OnBehalfOf = Standing(t.readText(`,"on_behalf_of":`))
	}
	readMember(t, `,"organization_id":`, &r.OrganizationID, id.ParseOrganization)
	r.Origin = id.Origin(t.readText(`,"origin":`))
	t.skip(`,"policy":`)
	t.readPolicy(&r.Policy)
	r.PublicKey = t.readText(`,"public_key":`)
	readMember(t, `,"received_at":`, &r.ReceivedAt, id.ParseInstant)
	r.SequenceNum = t.readNumber(`,"sequence_num":`)
	r.SigForm = t.readText(`,"sig_form":`)
	r.SigValueB64 = t.readText(`,"sig_value_b64":`)
	r.Signer = Signer(t.readText(`,"signer":`))
	if strings.HasPrefix(t.rest, `,"traceparent":`) {
		readMember(t, `,"traceparent":`, &r.Traceparent, parseRecordTraceparent)
	}
	t.skip(`,"v":1}`)
	r.V = 1
}

// readPolicy reads the members in the order of appendCanonical.
func (t *plainText) readPolicy(p *Policy) {
	p.ApprovalID = t.readNullable(`{"approval_id":`)
	readMember(t, `,"declared":`, &p.Declared, id.ParseDecision)
	readMember(t, `,"effective":`, &p.Effective, id.ParseDecision)
	p.Engine = t.readNullable(`,"engine":`)
	t.skip(`,"evaluated":`)
	if p.Evaluated = t.has("true"); !p.Evaluated {
		t.skip("false")
	}
	readNullableMember(t, `,"evaluated_at":`, &p.EvaluatedAt, id.ParseInstant)
	readNullableMember(t, `,"input_digest":`, &p.InputDigest, id.ParseHash)
	if strings.HasPrefix(t.rest, `,"intent":`) {
		p.Intent = id.Event(t.readText(`,"intent":`))
	}
	t.skip(`,"limits":`)
	p.Limits = t.copyUntil(`,"policy_digest":`)
	readNullableMember(t, `,"policy_digest":`, &p.PolicyDigest, id.ParseHash)
	p.PolicyID = t.readNullable(`,"policy_id":`)
	if t.skip(`,"policy_version":`); !t.has("null") {
		p.PolicyVersion = t.readNumber("")
	}
	p.RuleID = t.readNullable(`,"rule_id":`)
	t.skip("}")
}

// has consumes text if it is next, and reports whether it was.
func (t *plainText) has(text string) (found bool) {
	t.rest, found = strings.CutPrefix(t.rest, text)
	return found
}

// skip consumes text, which must be next.
func (t *plainText) skip(text string) {
	if !t.has(text) {
		t.failed = true
	}
}

// copyUntil consumes everything up to and including the next occurrence of text, and returns a copy
// of what precedes it.
func (t *plainText) copyUntil(text string) []byte {
	n := strings.Index(t.rest, text)
	if n < 0 {
		t.failed = true
		return nil
	}
	before := []byte(t.rest[:n])
	t.rest = t.rest[n:]
	return before
}

// cutText returns the quoted text after a name. It aliases the whole input.
func (t *plainText) cutText(name string) string {
	t.skip(name)
	t.skip(`"`)
	n := strings.IndexByte(t.rest, '"')
	if t.failed || n < 0 {
		t.failed = true
		return ""
	}
	text := t.rest[:n]
	t.rest = t.rest[n+1:]
	return text
}

func (t *plainText) readText(name string) string { return strings.Clone(t.cutText(name)) }

// readNullable returns "" for null.
func (t *plainText) readNullable(name string) string {
	if t.skip(name); t.has("null") {
		return ""
	}
	return t.readText("")
}

func (t *plainText) readNumber(name string) uint64 {
	t.skip(name)
	end := 0
	for end < len(t.rest) && t.rest[end] >= '0' && t.rest[end] <= '9' {
		end++
	}
	n, err := strconv.ParseUint(t.rest[:end], 10, 64)
	t.failed = t.failed || err != nil
	t.rest = t.rest[end:]
	return n
}

// readMember reads a member whose text parse accepts.
func readMember[T any](t *plainText, name string, value *T, parse func(string) (T, error)) {
	parsed, err := parse(t.cutText(name))
	*value, t.failed = parsed, t.failed || err != nil
}

// readNullableMember leaves the zero value if the member is null.
func readNullableMember[T any](t *plainText, name string, value *T, parse func(string) (T, error)) {
	if t.skip(name); !t.has("null") {
		readMember(t, "", value, parse)
	}
}
