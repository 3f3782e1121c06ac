package index

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unique"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Row is an event in a list.
type Row struct {
	Index      id.Index
	Event      id.Event
	Hash       id.Hash // of the entry
	ReceivedAt id.Instant
	Agent      id.Agent
	Tool       id.Tool // "" if none
	Kind       string
	Declared   id.Decision
	Effective  id.Decision
	Policy     string  // that decided; "" if none
	Version    uint64  // of Policy; 0 if none
	Digest     id.Hash // of Version; zero if none
	Rule       string  // "" if none
	Signer     event.Signer
	Trace      id.Trace
	Caller     id.Trace // of the caller's traceparent, signed or seen by the service; "" if none or if equal to Trace
	Principal  string   // "" if the envelope is erased
	OnBehalfOf string   // the value of on_behalf_of (event.ParseOnBehalfOf); "" if none, if malformed or if the envelope is erased
	Verified   bool     // whether the service verified OnBehalfOf
	ErasedBy   id.Index // the event that erased the envelope; 0 if it is not erased
	Act        *Act     // of an act, in lists of acts; otherwise nil
}

// actor returns who made a change that the service recorded, without the credential. It returns "" for other events.
func (r *Row) actor() string {
	if r.Signer != event.SignerSystem {
		return ""
	}
	actor, _, _ := strings.Cut(r.Principal, "/")
	return actor
}

// statement contains the members of a record that a row contains and columns do not.
type statement struct {
	Signer      event.Signer      `json:"signer"`
	Traceparent event.Traceparent `json:"traceparent"`
	Policy      struct {
		ApprovalID string      `json:"approval_id"`
		Declared   id.Decision `json:"declared"`
		Evaluated  bool        `json:"evaluated"`
		Intent     id.Event    `json:"intent"`
		Digest     id.Hash     `json:"policy_digest"`
		PolicyID   string      `json:"policy_id"`
		Version    uint64      `json:"policy_version"`
		RuleID     string      `json:"rule_id"`
	} `json:"policy"`
}

// readStatement parses a record as the service wrote it: canonical JSON, in which each of these names occurs once, in
// this order. Quotes within texts are escaped, so a name in quotes that is followed by a colon is a member.
func readStatement(record []byte) (read statement, err error) {
	approval, rest, first := cutMember(record, `"approval_id":`)
	declared, rest, judged := cutMember(rest, `"declared":`)
	own, rest, limited := bytes.Cut(rest, []byte(`"limits":`))
	digest, rest, digested := cutMember(rest, `"policy_digest":`)
	policy, rest, named := cutMember(rest, `"policy_id":`)
	version, rest, numbered := cutNumber(rest, `"policy_version":`)
	rule, rest, ruled := cutMember(rest, `"rule_id":`)
	signer, rest, signed := cutMember(rest, `"signer":`)
	traceparent, _, _ := cutMember(rest, `"traceparent":`)
	_, own, decided := bytes.Cut(own, []byte(`"evaluated":`))
	intent, _, follows := cutMember(own, `"intent":`)
	if !first || !judged || !limited || !digested || !named || !numbered || !ruled || !signed || !decided {
		err = json.Unmarshal(record, &read)
		return read, err
	}
	read.Signer, read.Policy.RuleID, read.Policy.ApprovalID = event.Signer(signer), string(rule), string(approval)
	read.Policy.PolicyID, read.Policy.Version = string(policy), version
	if traceparent != nil {
		read.Traceparent, _ = event.ParseTraceparent(string(traceparent))
	}
	if read.Policy.Evaluated = bytes.HasPrefix(own, []byte("true")); follows {
		read.Policy.Intent = id.Event(intent)
	}
	if err = read.Policy.Declared.UnmarshalText(declared); err == nil && digest != nil {
		err = read.Policy.Digest.UnmarshalText(digest)
	}
	return read, err
}

// cutMember returns the text of a member, or nil for null, and the rest after it. plain is false if there is no such
// member, or if the text contains an escape.
func cutMember(record []byte, name string) (text, rest []byte, plain bool) {
	_, rest, found := bytes.Cut(record, []byte(name))
	if found && bytes.HasPrefix(rest, []byte("null")) {
		return nil, rest, true
	}
	if !found || len(rest) == 0 || rest[0] != '"' {
		return nil, nil, false
	}
	text, rest, closed := bytes.Cut(rest[1:], []byte(`"`))
	return text, rest, closed && bytes.IndexByte(text, '\\') < 0
}

// cutNumber returns the whole number of a member, or 0 for null, and the rest after it. plain is false if there is no such member.
func cutNumber(record []byte, name string) (n uint64, rest []byte, plain bool) {
	_, rest, found := bytes.Cut(record, []byte(name))
	digits, after, ended := bytes.Cut(rest, []byte(","))
	if string(digits) == "null" {
		return 0, after, ended
	}
	n, err := strconv.ParseUint(string(digits), 10, 64)
	return n, after, found && ended && err == nil
}

// allParts are the parts of an event that a row needs.
const allParts = storage.FieldRecord | storage.FieldEnvelope

// newRow returns the row of an event that was read with allParts. It does not retain the event's texts.
func newRow(e *storage.Event) (Row, error) {
	row, _, err := readRow(e)
	return row, err
}

// newRowAndPart returns the row of an event and what it says about acts.
func newRowAndPart(e *storage.Event) (Row, part, error) {
	row, read, err := readRow(e)
	if err != nil {
		return Row{}, part{}, err
	}
	return row, readPart(e, &row, &read), nil
}

func readRow(e *storage.Event) (Row, statement, error) {
	read, err := readStatement(e.Record)
	if err != nil {
		return Row{}, read, fmt.Errorf("record of event %d: %w: %w", e.Index, storage.ErrCorrupt, err)
	}
	principal, err := readPrincipal(e.Envelope)
	if err != nil {
		return Row{}, read, fmt.Errorf("envelope of event %d: %w: %w", e.Index, storage.ErrCorrupt, err)
	}
	caller := readTraceparent(e.Envelope, read.Traceparent).TraceID()
	if caller == e.Trace {
		caller = ""
	}
	behalf, verified := readOnBehalfOf(e)
	return Row{
		Index: e.Index, Event: e.ID, Hash: log.EntryOf(*e).Hash(), ReceivedAt: e.ReceivedAt,
		Agent: e.Agent, Tool: e.Tool, Kind: e.ActionKind,
		Declared: read.Policy.Declared, Effective: e.Effective, Policy: read.Policy.PolicyID,
		Version: read.Policy.Version, Digest: read.Policy.Digest, Rule: read.Policy.RuleID,
		Signer: read.Signer, Trace: e.Trace, Caller: caller, Principal: principal,
		OnBehalfOf: behalf, Verified: verified,
		ErasedBy: e.ErasedBy,
	}, read, nil
}

// readTraceparent returns the traceparent of an envelope, or that of the record if the envelope has none.
func readTraceparent(envelope []byte, ofRecord event.Traceparent) event.Traceparent {
	if ofRecord == (event.Traceparent{}) && bytes.Contains(envelope, []byte(`"traceparent":"`)) {
		ofRecord, _ = event.ParseTraceparent(textMember(envelope, "traceparent"))
	}
	return ofRecord
}

// readOnBehalfOf returns the value of on_behalf_of, and whether the record states that it was verified. It returns "" for a value that
// is not well-formed, which only events have that were stored before the member was defined.
func readOnBehalfOf(e *storage.Event) (value string, verified bool) {
	if !bytes.Contains(e.Envelope, []byte(`"on_behalf_of":{`)) {
		return "", false
	}
	text := memberOf(e.Envelope, "on_behalf_of")
	if _, err := event.ParseOnBehalfOf(text); err != nil {
		return "", false
	}
	return string(text), bytes.Contains(e.Record, []byte(`"on_behalf_of":"`+event.Verified+`"`))
}

// subject returns for whom the agent acted, or the zero value if the event does not state it.
func (r *Row) subject() (s event.Actor) {
	if r.OnBehalfOf == "" {
		return s
	}
	if o, err := event.ParseOnBehalfOf([]byte(r.OnBehalfOf)); err == nil {
		s = event.Actor{Issuer: o.Issuer, Subject: o.Subject}
	}
	return s
}

// internTexts lets cached rows share texts that many of them contain.
func (r *Row) internTexts() {
	r.Agent, r.Tool, r.Kind = intern(r.Agent), intern(r.Tool), intern(r.Kind)
	r.Policy, r.Rule, r.Signer, r.Principal = intern(r.Policy), intern(r.Rule), intern(r.Signer), intern(r.Principal)
	if r.OnBehalfOf != "" {
		r.OnBehalfOf = intern(r.OnBehalfOf)
	}
}

// intern returns s without retaining the memory that it is a part of.
func intern[S ~string](s S) S { return unique.Make(s).Value() }

// cutPrincipal returns actor_principal if it is the second member after action_kind and both are texts without escapes,
// as in nearly all envelopes. It takes a tenth of the time of decoding.
func cutPrincipal(envelope []byte) (principal string, plain bool) {
	rest, begins := bytes.CutPrefix(envelope, []byte(`{"action_kind":"`))
	kind, rest, closed := bytes.Cut(rest, []byte(`"`))
	rest, follows := bytes.CutPrefix(rest, []byte(`,"actor_principal":"`))
	value, _, ended := bytes.Cut(rest, []byte(`"`))
	plain = begins && closed && follows && ended && bytes.IndexByte(kind, '\\') < 0 && bytes.IndexByte(value, '\\') < 0
	if !plain {
		return "", false
	}
	return string(value), true
}

// readPrincipal returns actor_principal of an envelope, or "" without an envelope. Members of canonical JSON are
// sorted, so the search ends early.
func readPrincipal(envelope []byte) (string, error) {
	if envelope == nil {
		return "", nil
	}
	if principal, plain := cutPrincipal(envelope); plain {
		return principal, nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(envelope))
	if _, err := d.ReadToken(); err != nil {
		return "", err
	}
	for {
		name, err := d.ReadToken()
		if err != nil || name.Kind() != '"' {
			return "", err
		}
		if name.String() != "actor_principal" {
			if err := d.SkipValue(); err != nil {
				return "", err
			}
			continue
		}
		value, err := d.ReadToken()
		if err != nil || value.Kind() != '"' {
			return "", err
		}
		return value.String(), nil
	}
}
