package agent

import (
	"encoding/base64"
	"log/slog"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire/issued"
)

// Credentials allow an agent to sign. They are shown once, by encoding them as JSON, and are not stored. fmt and slog
// do not print them.
type Credentials struct {
	Agent   id.Agent
	Key     id.Key
	Private edkey.Private
}

// MarshalJSON writes agent_id, key_id, private_key_b64 (the 32-byte seed) and
// public_key_b64, both in standard base64 with padding.
func (c Credentials) MarshalJSON() ([]byte, error) {
	return json.Marshal(c.Wire())
}

// Wire returns the document that shows the credentials.
func (c Credentials) Wire() issued.Credentials {
	seed := c.Private.Seed()
	return issued.Credentials{AgentID: c.Agent, KeyID: c.Key, PrivateB64: base64.StdEncoding.EncodeToString(seed[:]),
		PublicB64: c.Private.Public().String()}
}

// LogValue implements slog.LogValuer. It contains only the key ID.
func (c Credentials) LogValue() slog.Value {
	return slog.StringValue("credentials of " + string(c.Key))
}
