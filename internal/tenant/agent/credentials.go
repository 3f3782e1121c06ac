package agent

import (
	"encoding/base64"
	"log/slog"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
)

// Credentials let an agent sign. They are shown once, by encoding them as JSON,
// and are not kept. fmt and slog don't show them.
type Credentials struct {
	Agent   id.Agent
	Key     id.Key
	Private edkey.Private
}

// MarshalJSON writes agent_id, key_id, private_key_b64 (the 32-byte seed) and
// public_key_b64, both in standard base64 with padding.
func (c Credentials) MarshalJSON() ([]byte, error) {
	seed := c.Private.Seed()
	return json.Marshal(struct {
		Agent   id.Agent `json:"agent_id"`
		Key     id.Key   `json:"key_id"`
		Private string   `json:"private_key_b64"`
		Public  string   `json:"public_key_b64"`
	}{c.Agent, c.Key, base64.StdEncoding.EncodeToString(seed[:]), c.Private.Public().String()})
}

// LogValue names the key and not more.
func (c Credentials) LogValue() slog.Value {
	return slog.StringValue("credentials of " + string(c.Key))
}
