package wire

import (
	"slices"

	"github.com/agentledger/agentledger/id"
)

// Agent is an agent of the organization.
type Agent struct {
	AgentID     id.Agent   `json:"agent_id"`
	DisplayName string     `json:"display_name"`
	CreatedAt   id.Instant `json:"created_at"`
	CreatedBy   string     `json:"created_by"`
	Bridge      bool       `json:"bridge"`
	Active      bool       `json:"active"`
}

// Name returns the display name, or the ID if there is none.
func (a Agent) Name() string {
	if a.DisplayName != "" {
		return a.DisplayName
	}
	return string(a.AgentID)
}

// Agents is a page of the list of agents.
type Agents struct {
	Agents []Agent `json:"agents"`
	Next   Text    `json:"next"`
}

// AgentKey is a signing key of an agent.
type AgentKey struct {
	AgentID         id.Agent   `json:"agent_id"`
	KeyID           id.Key     `json:"key_id"`
	PublicKeyB64    string     `json:"public_key_b64"`
	DID             string     `json:"did"`
	Custody         string     `json:"custody"`
	Status          string     `json:"status"` // active, retired or revoked
	RegisteredAt    id.Instant `json:"registered_at"`
	EndedAt         Time       `json:"ended_at"`
	CompromisedFrom *id.Index  `json:"compromised_from"`
	Reason          string     `json:"reason"`
}

// AgentKeys is a page of the keys of an agent.
type AgentKeys struct {
	Keys []AgentKey `json:"keys"`
	Next Text       `json:"next"`
}

// CreatedAgentWithKey is the answer to a new agent that brought its own key.
type CreatedAgentWithKey struct {
	Agent Agent    `json:"agent"`
	Key   AgentKey `json:"key"`
}

// IngestKey is an ingest key without its secret.
type IngestKey struct {
	KeyID      string         `json:"key_id"`
	Name       string         `json:"name"`
	KeyPrefix  string         `json:"key_prefix"`
	Scopes     []string       `json:"scopes"`
	Agents     []id.Agent     `json:"agents"` // empty: all
	CreatedAt  id.Instant     `json:"created_at"`
	CreatedBy  string         `json:"created_by"`
	ExpiresAt  Time           `json:"expires_at"`
	RevokedAt  Time           `json:"revoked_at"`
	Asks       bool           `json:"asks"`
	Subjects   *SubjectIssuer `json:"subject_issuer,omitzero"`
	LastUsedAt Time           `json:"last_used_at"`
}

// SubjectIssuer is whose tokens prove on_behalf_of of the events that an ingest key sends.
type SubjectIssuer struct {
	Issuer   string `json:"issuer"`
	Audience string `json:"audience"`
	Required bool   `json:"required"`
}

// Has reports whether the key has a scope.
func (k IngestKey) Has(scope string) bool { return slices.Contains(k.Scopes, scope) }

// IngestKeys is a page of the list of ingest keys.
type IngestKeys struct {
	Keys []IngestKey `json:"keys"`
	Next Text        `json:"next"`
}

// CreatedIngestKey is the answer to a new ingest key. No other answer contains the secret.
type CreatedIngestKey struct {
	Key    IngestKey `json:"key"`
	Secret string    `json:"secret"`
}

// Token is a console token of the caller without its secret.
type Token struct {
	TokenID   string     `json:"token_id"`
	Name      string     `json:"name"`
	Role      string     `json:"role"`
	CreatedAt id.Instant `json:"created_at"`
	ExpiresAt id.Instant `json:"expires_at"`
}

// Tokens is a page of the caller's tokens.
type Tokens struct {
	Tokens []Token `json:"tokens"`
	Next   Text    `json:"next"`
}

// CreatedToken is the answer to a new token. No other answer contains the secret.
type CreatedToken struct {
	Token  `json:",inline"`
	Secret string `json:"token"`
}
