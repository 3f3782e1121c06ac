package ledgertest

import (
	"bytes"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
)

// Agent signs events for both organizations.
type Agent struct{ key edkey.Private }

// NewAgent returns an agent with a key of its own.
func NewAgent() *Agent { return &Agent{key: edkey.NewPrivate()} }

// Public returns the key that verifies the agent's signatures.
func (a *Agent) Public() edkey.Public { return a.key.Public() }

// Envelope signs an event with an id, which is also a text in its payload, and with additional payload members.
func (a *Agent) Envelope(t testing.TB, tenant id.Tenant, name string, more map[string]any) *event.Envelope {
	t.Helper()
	return a.EnvelopeWith(t, tenant, name, more, nil)
}

// EnvelopeWith is Envelope with changed members. A member that is nil is left out.
func (a *Agent) EnvelopeWith(t testing.TB, tenant id.Tenant, name string, more, members map[string]any) *event.Envelope {
	t.Helper()
	payload := map[string]any{"text": name}
	for k, v := range more {
		payload[k] = v
	}
	all := map[string]any{
		"schema_version": 1, "event_id": name, "organization_id": Organization(tenant).String(),
		"trace_id": "trc", "agent_id": "agt_test", "key_id": "key_test", "emitted_at": "2026-11-20T12:00:00.000Z",
		"actor_type": "agent", "actor_principal": "svc", "action_kind": "tool_call", "tool_name": "acme.orders.read",
		"policy_decision": "allow", "payload": payload,
	}
	for name, value := range members {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	unsigned, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := event.Sign(unsigned, a.key)
	if err != nil {
		t.Fatal(err)
	}
	e, err := event.Parse(signed, event.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Attestation returns the server's statement about an event of the agent.
func (a *Agent) Attestation(e *event.Envelope) log.Attestation {
	return log.Attestation{
		Form: event.FormDigest, PublicKey: did.Multikey(a.key.Public().Bytes()),
		Signer: event.SignerAgent, Custody: event.CustodyAgent,
		IngestKeyID: "ik_test", Policy: event.Policy{Declared: id.Allow, Effective: id.Allow},
		Disclosure: id.DiscloseRecord, IdempotencyKey: "idem-" + string(e.EventID),
	}
}

// Genesis returns the genesis of a tenant's ledger.
func Genesis(t id.Tenant) log.Genesis {
	return log.Genesis{Organization: Organization(t), Origin: Origin(t)}
}

// Signed returns the checkpoint of a state after verifying its signature.
func Signed(s *log.State) (tlog.Checkpoint, error) {
	return tlog.OpenCheckpoint(bytes.Clone(s.Checkpoint()), s.VerifierKey())
}

// Time is a clock that stands still until it is moved.
type Time struct {
	mu     sync.Mutex
	passed time.Duration
}

// Clock returns noon of a fixed day plus the time that has passed since.
func (c *Time) Clock() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).Add(c.passed)
}

// Pass moves the clock forward.
func (c *Time) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passed += d
}

// Copy returns another clock that shows the same time.
func (c *Time) Copy() *Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &Time{passed: c.passed}
}
