package event

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// ErrRecord is wrapped for text that is not exactly a record.
var ErrRecord = errors.New("record: not the exact canonical form")

// Signer is the kind of key that signed the envelope.
type Signer string

const (
	SignerAgent  Signer = "agent"  // a key registered for the agent
	SignerBridge Signer = "bridge" // a key of the service, on behalf of a tool without a key
	SignerSystem Signer = "system" // a key of the service, for its own events
)

// Custody states who generated the private key.
type Custody string

const (
	CustodyAgent  Custody = "agent"  // the agent; the service never saw it
	CustodyServer Custody = "server" // the service, which showed the private key once
)

// Record is the server's statement about one accepted envelope. The zero value of a nullable member
// represents null.
type Record struct {
	Origin         id.Origin       `json:"origin"`
	OrganizationID id.Organization `json:"organization_id"`
	SequenceNum    uint64          `json:"sequence_num"`
	EventID        id.Event        `json:"event_id"`
	AgentID        id.Agent        `json:"agent_id"`
	KeyID          id.Key          `json:"key_id"`
	PublicKey      string          `json:"public_key"` // multibase Multikey
	Signer         Signer          `json:"signer"`
	Custody        Custody         `json:"custody"`
	EventDigest    id.Hash         `json:"event_digest"`
	SigForm        string          `json:"sig_form"` // digest or canonical
	SigValueB64    string          `json:"sig_value_b64"`
	IngestKeyID    string          `json:"ingest_key_id"` // null for events of the server
	ReceivedAt     id.Instant      `json:"received_at"`
	Policy         Policy          `json:"policy"`
	// What the service knows about on_behalf_of of the envelope. Absent, not null, unless a token was verified.
	OnBehalfOf Standing `json:"on_behalf_of,omitzero"`
	// The traceparent of the request, if the envelope has none. Absent, not null, in all other records. The service
	// saw it, and nobody signed it.
	Traceparent Traceparent `json:"traceparent,omitzero"`
	V           int         `json:"v"` // 1; filled in by rendering
}

// Policy is the server's decision on one event and its reasons. Members other than Evaluated,
// Declared and Effective are null if they do not apply, except Intent, which is then absent.
type Policy struct {
	Evaluated     bool        `json:"evaluated"`
	Declared      id.Decision `json:"declared"`
	Effective     id.Decision `json:"effective"`
	PolicyID      string      `json:"policy_id"`
	PolicyVersion uint64      `json:"policy_version"`
	PolicyDigest  id.Hash     `json:"policy_digest"`
	RuleID        string      `json:"rule_id"`
	Engine        string      `json:"engine"`
	InputDigest   id.Hash     `json:"input_digest"`
	// Of a result: the stored intent that decided. Absent, not null, in all other records.
	Intent      id.Event       `json:"intent"`
	EvaluatedAt id.Instant     `json:"evaluated_at"`
	Limits      jsontext.Value `json:"limits"` // canonical array; nil is [] when Evaluated, else null
	ApprovalID  string         `json:"approval_id"`
}

// RecordHash returns the SHA-256 of a record's text, which the entry of the event contains.
func RecordHash(text []byte) id.Hash { return sha256.Sum256(text) }

// ParseRecord parses a record's text. It accepts exactly the form of Text: all members, no others,
// in canonical form. Errors wrap ErrRecord.
func ParseRecord(text []byte) (Record, error) {
	if r, accepted := readPlainRecord(text); accepted {
		return r, nil
	}
	return decodeRecord(text)
}

// decodeRecord is ParseRecord for any spelling of the members.
func decodeRecord(text []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(text, &r, json.RejectUnknownMembers(true)); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	if err := r.checkGrammars(); err != nil {
		return Record{}, err
	}
	if !bytes.Equal(r.Text(), text) {
		return Record{}, ErrRecord
	}
	return r, nil
}

// checkGrammars rejects values that Text would render like those of a well-formed record.
func (r *Record) checkGrammars() error {
	if r.SequenceNum == 0 || r.SequenceNum > MaxSeq || r.Policy.PolicyVersion > MaxSeq {
		return fmt.Errorf("%w: number out of range", ErrRecord)
	}
	if r.Policy.Declared == 0 || r.Policy.Effective == 0 || !r.Signer.isKnownSigner() ||
		!r.Custody.isKnownCustody() || !isKnownForm(r.SigForm) ||
		r.OnBehalfOf != "" && r.OnBehalfOf != Verified {
		return fmt.Errorf("%w: unknown word", ErrRecord)
	}
	return r.Policy.checkLimits()
}

func (s Signer) isKnownSigner() bool {
	return s == SignerAgent || s == SignerBridge || s == SignerSystem
}
func (c Custody) isKnownCustody() bool { return c == CustodyAgent || c == CustodyServer }
func isKnownForm(s string) bool        { return s == "digest" || s == "canonical" }

// checkLimits rejects limits that rendering would copy unchecked, and sets limits to nil if
// rendering would make null of them.
func (p *Policy) checkLimits() error {
	limits := []byte(p.Limits)
	if bytes.Equal(limits, []byte("null")) {
		p.Limits = nil
		return nil
	}
	canonical, err := jcs.Canonicalize(limits, 8)
	if err != nil || !bytes.Equal(canonical, limits) || len(limits) == 0 || limits[0] != '[' {
		return fmt.Errorf("%w: limits", ErrRecord)
	}
	return nil
}
