// Package grant is the signed permission that a consumed approval gives: a C2SP
// signed note by which a tool can tell offline that people agreed to one action.
//
// Invariants:
//
//   - Pure: no I/O, no clock. One grant has one text and one text one grant.
//   - A grant is of one organization's log, one agent and one action, and of the
//     policy under which people were asked. It is good in [NotBefore, NotAfter).
//   - What a tool may check offline is in the text. That a grant is used once is
//     the tool's own duty: it keeps the nonces until their NotAfter.
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
package grant

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/tlog"
)

// Life is how long a grant is good, in milliseconds.
const Life id.Instant = 300_000

const header = "agentledger/grant/v1"

// ErrMalformed is wrapped by errors about what is no grant.
var ErrMalformed = errors.New("malformed")

// Nonce tells two grants apart.
type Nonce [16]byte

// Grant is what the note says.
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

// KeyName returns the name of the key that signs grants of a log.
func KeyName(o id.Origin) string { return string(o) + "/grant" }

// Text returns the signed text.
func (g Grant) Text() string {
	return strings.Join([]string{
		header, string(g.Origin), g.Approval, string(g.Agent), g.ActionDigest.String(), g.PolicyDigest.String(),
		hex.EncodeToString(g.Nonce[:]), g.NotBefore.String(), g.NotAfter.String(),
	}, "\n") + "\n"
}

// Sign returns the signed note of a grant. It refuses a key of another origin
// and what Parse would not read back.
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

// Open reads a grant that key signed; the key's name must be that of the grant's
// origin. Whether the grant is of the action at hand, and good now, says Check.
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

// What Check finds.
var (
	ErrOtherAction = errors.New("the grant is for another action")
	ErrNotYet      = errors.New("the grant is not good yet")
	ErrOver        = errors.New("the grant is over")
)

// Check says whether the grant is for an action and good at now.
func (g Grant) Check(action id.Hash, now id.Instant) error {
	switch {
	case g.ActionDigest != action:
		return ErrOtherAction
	case now < g.NotBefore:
		return ErrNotYet
	case now >= g.NotAfter:
		return ErrOver
	}
	return nil
}

// Action is what people are asked about.
type Action struct {
	Organization id.Organization
	Agent        id.Agent
	Tool         id.Tool
	Payload      []byte // canonical JSON object; nil is {}
}

// NewAction returns an action with its payload, a JSON object of any spelling or
// nil, in canonical form; an error for what is no JSON object.
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

// Digest is the action_digest: SHA-256 of the RFC 8785 form of agent_id,
// organization_id in lower case, payload, tool_name and v, which is 1.
func (a Action) Digest() id.Hash {
	payload := a.Payload
	if payload == nil {
		payload = []byte("{}")
	}
	h := sha256.New()
	b := jcs.AppendString([]byte(`{"agent_id":`), string(a.Agent))
	b = jcs.AppendString(append(b, `,"organization_id":`...), a.Organization.String())
	h.Write(append(b, `,"payload":`...))
	h.Write(payload)
	b = jcs.AppendString(append(b[:0], `,"tool_name":`...), string(a.Tool))
	h.Write(append(b, `,"v":1}`...))
	return id.Hash(h.Sum(nil))
}
