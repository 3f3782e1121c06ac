// Package grant implements the signed permission that a consumed approval yields: a C2SP signed
// note by which a tool can check offline that approvers approved one action.
//
// Invariants:
//
//   - Pure: no I/O, no clock. Each grant has exactly one text, and each text is exactly one grant.
//   - A grant names one organization's log, one agent, one action, and the policy under which
//     approvers were asked. It is valid in [NotBefore, NotAfter).
//   - A tool can check the whole text offline. The tool MUST accept a grant only once. To do so it
//     stores each nonce until its NotAfter.
//
// The text has nine lines:
//
//	agentledger/grant/v1
//	<origin>
//	<approval_id>
//	<agent_id>
//	<action_digest, hex>
//	<policy_digest, hex>
//	<nonce, 32 hex digits>
//	<not_before, YYYY-MM-DDThh:mm:ss.sssZ>
//	<not_after, likewise>
//
// The package is stable in the sense of README, section Stability.
package grant

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/tlog"
)

// Life is the maximum lifetime of a grant, in milliseconds.
const Life id.Instant = 300_000

const header = "agentledger/grant/v1"

// ErrMalformed is wrapped by errors about a text that is not a grant.
var ErrMalformed = errors.New("malformed")

// Nonce distinguishes two grants.
type Nonce [16]byte

// Grant is the content of the note.
type Grant struct {
	Origin       id.Origin
	Approval     string // approval_id
	Agent        id.Agent
	ActionDigest id.Hash
	PolicyDigest id.Hash
	Nonce        Nonce
	NotBefore    id.Instant
	NotAfter     id.Instant // at most Life later
}

// KeyName returns the name of the key that signs the grants of a log.
func KeyName(o id.Origin) string { return string(o) + "/grant" }

// Text returns the signed text.
func (g Grant) Text() string {
	return strings.Join([]string{
		header, string(g.Origin), g.Approval, string(g.Agent), g.ActionDigest.String(), g.PolicyDigest.String(),
		hex.EncodeToString(g.Nonce[:]), g.NotBefore.String(), g.NotAfter.String(),
	}, "\n") + "\n"
}

// Sign returns the signed note of a grant. The error wraps ErrMalformed if the key is of another
// origin or if Open would reject the grant.
func Sign(g Grant, key tlog.SignerKey) ([]byte, error) {
	if key.Verifier().Name() != KeyName(g.Origin) {
		return nil, fmt.Errorf("sign grant: the key is of another origin: %w", ErrMalformed)
	}
	if _, err := parseGrantText(g.Text()); err != nil {
		return nil, fmt.Errorf("sign grant: %w", err)
	}
	n, err := key.SignNote(g.Text())
	if err != nil {
		return nil, fmt.Errorf("sign grant: %w", err)
	}
	return n.Bytes(), nil
}

// Open parses a grant that key signed. The key's name MUST be KeyName of the grant's origin. Use
// Grant.Check to compare the grant with an action and a time. Errors wrap ErrMalformed,
// tlog.ErrMalformed or tlog.ErrSignature.
func Open(note []byte, key tlog.VerifierKey) (Grant, error) {
	n, err := tlog.ParseNote(note)
	if err != nil {
		return Grant{}, fmt.Errorf("open grant: %w", err)
	}
	if err := n.Verify(key); err != nil {
		return Grant{}, fmt.Errorf("open grant: %w", err)
	}
	g, err := parseGrantText(n.Text)
	if err != nil {
		return Grant{}, fmt.Errorf("open grant: %w", err)
	}
	if key.Name() != KeyName(g.Origin) {
		return Grant{}, fmt.Errorf("open grant: the key is of another origin: %w", tlog.ErrSignature)
	}
	return g, nil
}

// Errors of Grant.Check.
var (
	ErrOtherAction = errors.New("the grant is for another action")
	ErrNotYet      = errors.New("the grant is not valid yet")
	ErrExpired     = errors.New("the grant has expired")
)

// Check returns nil if the grant permits the action and is valid at now. It returns ErrOtherAction,
// ErrNotYet or ErrExpired otherwise.
func (g Grant) Check(action id.Hash, now id.Instant) error {
	switch {
	case g.ActionDigest != action:
		return ErrOtherAction
	case now < g.NotBefore:
		return ErrNotYet
	case now >= g.NotAfter:
		return ErrExpired
	}
	return nil
}

// Action is the action that approvers decide on.
type Action struct {
	Organization id.Organization
	Agent        id.Agent
	Tool         id.Tool
	OnBehalfOf   []byte // canonical value of on_behalf_of; nil if the agent does not state for whom it acts
	Payload      []byte // canonical JSON object; nil is {}
}

// ActionOf returns the action of an event. It has on_behalf_of of the event as it is, well-formed or not.
func ActionOf(e *event.Envelope) Action {
	return Action{Organization: e.OrganizationID, Agent: e.AgentID, Tool: e.Tool, OnBehalfOf: e.Subject(), Payload: e.Payload}
}

// WithoutSubject returns the action that receipts are of: a tool need not know on whose behalf it is asked.
func (a Action) WithoutSubject() Action {
	a.OnBehalfOf = nil
	return a
}

// NewAction returns an action with its payload in canonical form. The payload must be a JSON object
// of any spelling, or nil.
func NewAction(o id.Organization, agent id.Agent, tool id.Tool, payload []byte) (Action, error) {
	a := Action{Organization: o, Agent: agent, Tool: tool}
	if payload == nil {
		return a, nil
	}
	canonical, _, err := jcs.ParseObject(nil, payload, jcs.MaxDepth)
	if err != nil {
		return Action{}, fmt.Errorf("payload: %w", err)
	}
	a.Payload = canonical
	return a, nil
}

// Digest returns the action_digest: the SHA-256 of the RFC 8785 form of an object with agent_id,
// organization_id in lower case, payload, tool_name and v, which is 1. With OnBehalfOf, the object also
// has on_behalf_of, and v is 2.
func (a Action) Digest() id.Hash {
	payload := a.Payload
	if payload == nil {
		payload = []byte("{}")
	}
	h, version := sha256.New(), `,"v":1}`
	b := jcs.AppendString([]byte(`{"agent_id":`), string(a.Agent))
	if a.OnBehalfOf != nil {
		b, version = append(append(b, `,"on_behalf_of":`...), a.OnBehalfOf...), `,"v":2}`
	}
	b = jcs.AppendString(append(b, `,"organization_id":`...), a.Organization.String())
	h.Write(append(b, `,"payload":`...))
	h.Write(payload)
	b = jcs.AppendString(append(b[:0], `,"tool_name":`...), string(a.Tool))
	h.Write(append(b, version...))
	return id.Hash(h.Sum(nil))
}
