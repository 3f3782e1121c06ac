// Package event defines the three documents of an event: the envelope, which the agent signs, and
// the record and the entry, which the service writes. The record is the service's statement about
// the event, private unless disclosed. The entry is the public leaf. It commits to the record and
// to the previous entry.
//
// Invariants:
//
//   - An Envelope returned by Parse satisfies every rule of the format. Only its signature is
//     unchecked, because checking it requires a key: see Envelope.Verify.
//   - Members that the format does not define are kept and covered by the signature.
//   - Canonical is RFC 8785 canonical JSON. Digest, signature and store use these bytes for any
//     spelling of the body.
//   - Parse accepts every result of Sign, and Verify confirms it.
//   - Records and entries have exactly one accepted encoding, RFC 8785 canonical JSON. Parsing
//     rejects every other spelling, so a text and its hash determine each other.
//   - An entry contains the event hash of the previous entry; the first contains the genesis value
//     of its origin. Each leaf therefore commits to all leaves before it.
//   - The package does no I/O and reads no clock. The service decides how early or late an event
//     may be.
//
// Errors of Parse, Sign and SignEnvelope are *fault.Error; those of ParseEntry and ParseRecord wrap
// ErrEntry and ErrRecord. All functions are safe for concurrent use, and so are all methods of an
// Envelope as long as no goroutine changes it.
//
// The package is stable in the sense of README, section Stability.
package event

import (
	"fmt"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// DefaultMaxBytes is the default maximum size of an envelope.
const DefaultMaxBytes = 256 << 10

// Options restrict what Parse accepts. The zero value accepts an envelope of any organization, as
// sent by a client.
type Options struct {
	// MaxBytes limits both the size of the body as sent and of its canonical form. If zero,
	// DefaultMaxBytes applies.
	MaxBytes int
	// Organization is the organization that the envelope must belong to. If zero, any organization
	// is accepted.
	Organization id.Organization
	// Server allows names that are reserved for the server: agent system, key IDs that begin with
	// system_ or bridge_, action kinds that begin with ledger_.
	Server bool
}

// Envelope is a checked APS-1 envelope, returned by Parse. Its slices alias each other and may
// alias the parsed body, so they must not be changed.
type Envelope struct {
	OrganizationID id.Organization
	EventID        id.Event
	TraceID        id.Trace
	AgentID        id.Agent
	KeyID          id.Key
	EmittedAt      time.Time // UTC, up to nanoseconds as sent
	ActorType      string
	ActorPrincipal string
	ActionKind     string
	Decision       id.Decision // the declared policy_decision
	Tool           id.Tool     // "" if there is no tool_name
	Payload        []byte      // canonical JSON object
	Signature      [64]byte
	SignatureB64   string
	Canonical      []byte  // the whole envelope with its signature members
	Digest         id.Hash // event_digest

	signature  [2]jcs.Member // sig_alg and sig_value_b64 in Canonical
	onBehalfOf jcs.Member    // in Canonical; zero if missing
}

// Parse parses an envelope from the body of a request. Its errors are *fault.Error, checked in this
// order: TooLarge; Invalid for malformed JSON; Invalid for a missing or malformed organization_id;
// Forbidden for an organization other than o.Organization; Invalid for all other rules.
func Parse(body []byte, o Options) (*Envelope, error) {
	limit := o.MaxBytes
	if limit == 0 {
		limit = DefaultMaxBytes
	}
	if len(body) > limit {
		return nil, newTooLargeError(limit)
	}
	var buf [32]jcs.Member
	canonical, list, err := jcs.ParseObject(buf[:0], body, jcs.MaxDepth)
	if err != nil {
		return nil, err
	}
	if len(canonical) > limit {
		return nil, newTooLargeError(limit)
	}
	e := &Envelope{Canonical: canonical}
	m := collectMembers(canonical, list)
	if err := e.readOrganization(&m, o.Organization); err != nil {
		return nil, err
	}
	if err := e.readMembers(&m, o.Server); err != nil {
		return nil, err
	}
	e.signature = [2]jcs.Member{m.span[sigAlg], m.span[sigValue]}
	e.onBehalfOf = m.span[onBehalfOf]
	e.Digest = e.computeDigest()
	return e, nil
}

// readOrganization sets the organization, which must be want unless want is zero.
func (e *Envelope) readOrganization(m *members, want id.Organization) error {
	if m.memberValue(organizationID) == nil {
		return newMissingError(organizationID)
	}
	var buf [36]byte
	text, _ := jcs.AppendDecoded(buf[:0], m.memberValue(organizationID))
	var wanted [36]byte // nearly always equal, so this avoids allocating a string
	if want != (id.Organization{}) && string(text) == string(want.AppendTo(wanted[:0])) {
		e.OrganizationID = want
		return nil
	}
	org, err := id.ParseOrganization(string(text))
	if err != nil {
		return newInvalidError("organization_id must be a UUID")
	}
	if want != (id.Organization{}) && org != want {
		return fault.New(fault.Forbidden, "Organization mismatch for API key")
	}
	e.OrganizationID = org
	return nil
}

// readMembers sets all other fields.
func (e *Envelope) readMembers(m *members, server bool) error {
	for f := range fieldCount {
		if m.memberValue(f) == nil && f != toolName && f != onBehalfOf {
			return newMissingError(f)
		}
	}
	texts := m.decodeTexts()
	if err := checkTexts(m, &texts); err != nil {
		return err
	}
	if !server {
		if err := checkReserved(&texts); err != nil {
			return err
		}
	}
	e.EventID, e.TraceID = id.Event(texts[eventID]), id.Trace(texts[traceID])
	e.AgentID, e.KeyID = id.Agent(texts[agentID]), id.Key(texts[keyID])
	e.ActorType, e.ActorPrincipal = texts[actorType], texts[actorPrincipal]
	e.ActionKind, e.Tool = texts[actionKind], id.Tool(texts[toolName])
	e.Payload = m.memberValue(payload)
	return e.readParsed(&texts)
}

// readParsed sets the fields that are not plain strings.
func (e *Envelope) readParsed(texts *[fieldCount]string) (err error) {
	var ok bool
	if e.EmittedAt, ok = ParseTime(texts[emittedAt]); !ok {
		return newInvalidError("emitted_at must be a UTC time like 2026-01-31T12:00:00.000Z")
	}
	if e.Decision, err = id.ParseDecision(texts[policyDecision]); err != nil {
		return newInvalidError("policy_decision must be allow, deny or allow_with_obligation")
	}
	if e.Signature, ok = parseSignature(texts[sigValue]); !ok {
		return newInvalidError("sig_value_b64 must be the base64 of 64 bytes, with padding")
	}
	e.SignatureB64 = texts[sigValue]
	return nil
}

func newInvalidError(message string) error { return fault.New(fault.Invalid, message) }

func newMissingError(f field) error { return newInvalidError("Missing " + f.String()) }

func newTooLargeError(limit int) error {
	return fault.New(fault.TooLarge, fmt.Sprintf("The envelope is larger than %d bytes", limit))
}
