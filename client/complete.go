package client

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Event is an event before it is signed. Complete fills in zero fields; only ActionKind is
// required. Times are truncated to milliseconds.
type Event struct {
	EventID        id.Event       `json:"event_id,omitzero"`
	TraceID        id.Trace       `json:"trace_id,omitzero"`
	EmittedAt      id.Instant     `json:"emitted_at,omitzero"`
	ActorType      string         `json:"actor_type,omitzero"`
	ActorPrincipal string         `json:"actor_principal,omitzero"`
	ActionKind     string         `json:"action_kind"`
	Decision       id.Decision    `json:"policy_decision,omitzero"`
	Tool           id.Tool        `json:"tool_name,omitzero"`
	Payload        any            `json:"payload,omitzero"` // must become a JSON object
	Extra          map[string]any `json:",embed"`           // further members, which the signature covers
}

// SignEvent completes and signs e in the digest form. Errors are those of Complete and
// Sign.
func (s *Signer) SignEvent(e Event) ([]byte, error) {
	unsigned, err := jcs.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	complete, err := s.Complete(unsigned)
	if err != nil {
		return nil, err
	}
	return s.Sign(complete, event.FormDigest)
}

// Complete returns unsigned, a JSON object, with the members that it lacks:
//
//	schema_version    1
//	organization_id, agent_id, key_id    the signer's
//	event_id          evt_ with 16 random bytes in hex
//	trace_id          that of the member traceparent, if W3C Trace Context allows it; else trc_ with
//	                  16 random bytes in hex
//	emitted_at        now
//	actor_type        agent
//	actor_principal   the agent id
//	policy_decision   allow
//	payload           {}
//	salt              16 random bytes, base64url without padding
//
// Given members are kept. It is an error if the organization, agent or key differs from the
// signer's, or if the event_id is reserved (event.ReservedEvent). Completing twice creates two
// events. To send an event again, keep the result of Complete or Sign.
func (s *Signer) Complete(unsigned []byte) ([]byte, error) {
	canonical, members, err := jcs.ParseObject(nil, unsigned, jcs.MaxDepth)
	if err != nil {
		return nil, fmt.Errorf("complete event: %w", err)
	}
	given := make(map[string][]byte, len(members))
	for _, m := range members {
		given[string(m.Name(canonical))] = canonical[m.Value:m.End]
	}
	if err := s.checkOwnMembers(given); err != nil {
		return nil, fmt.Errorf("complete event: %w", err)
	}
	return s.appendMissingMembers(canonical, given), nil
}

// checkOwnMembers rejects an event of another organization, agent or key.
func (s *Signer) checkOwnMembers(given map[string][]byte) error {
	for _, own := range []struct{ name, value string }{
		{"agent_id", string(s.who.Agent)}, {"key_id", string(s.who.Key)},
	} {
		if value, ok := given[own.name]; ok && decodeString(value) != own.value {
			return fmt.Errorf("%s is not the signer's", own.name)
		}
	}
	if event.ReservedEvent(decodeString(given["event_id"])) {
		return errors.New("an event_id that begins with ledger_ or stp_ is reserved for the server")
	}
	if value, ok := given["organization_id"]; ok {
		if o, err := id.ParseOrganization(decodeString(value)); err != nil || o != s.who.Organization {
			return fmt.Errorf("organization_id is not the signer's")
		}
	}
	return nil
}

func decodeString(value []byte) string {
	decoded, _ := jcs.AppendDecoded(nil, value)
	return string(decoded)
}

// appendMissingMembers appends the missing members to a canonical object.
func (s *Signer) appendMissingMembers(canonical []byte, given map[string][]byte) []byte {
	out := append([]byte(nil), canonical[:len(canonical)-1]...)
	for _, m := range []struct {
		name  string
		value func() string
	}{
		{"schema_version", func() string { return "1" }},
		{"organization_id", func() string { return quoteString(s.who.Organization.String()) }},
		{"event_id", func() string { return quoteString("evt_" + hex.EncodeToString(randomBytes())) }},
		{"trace_id", func() string {
			caller, ok := event.ParseTraceparent(decodeString(given["traceparent"]))
			if ok {
				return quoteString(string(caller.TraceID()))
			}
			return quoteString("trc_" + hex.EncodeToString(randomBytes()))
		}},
		{"agent_id", func() string { return quoteString(string(s.who.Agent)) }},
		{"key_id", func() string { return quoteString(string(s.who.Key)) }},
		{"emitted_at", func() string { return quoteString(id.InstantOf(time.Now()).String()) }},
		{"actor_type", func() string { return quoteString("agent") }},
		{"actor_principal", func() string { return quoteString(string(s.who.Agent)) }},
		{"policy_decision", func() string { return quoteString(id.Allow.String()) }},
		{"payload", func() string { return "{}" }},
		{"salt", func() string { return quoteString(base64.RawURLEncoding.EncodeToString(randomBytes())) }},
	} {
		if _, ok := given[m.name]; ok {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(jcs.AppendString(out, m.name), ':'), m.value()...)
	}
	return append(out, '}')
}

func quoteString(s string) string { return string(jcs.AppendString(nil, s)) }

func randomBytes() []byte {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return b
}
