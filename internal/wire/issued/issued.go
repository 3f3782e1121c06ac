// Package issued contains the documents by which the service hands out private keys of agents. It is apart from package
// wire because it needs the type of log values, and the program of agents does not contain a logger.
package issued

import (
	"log/slog"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
)

// Credentials let an agent sign. The answer that creates them is the only one that contains them.
type Credentials struct {
	AgentID    id.Agent `json:"agent_id"`
	KeyID      id.Key   `json:"key_id"`
	PrivateB64 string   `json:"private_key_b64"` // the 32-byte seed, standard base64
	PublicB64  string   `json:"public_key_b64"`
}

// LogValue returns the key ID only, so that logs never contain the private key.
func (c Credentials) LogValue() slog.Value {
	return slog.StringValue("credentials of " + string(c.KeyID))
}

// CreatedAgent is the answer to a new agent whose key the service generated.
type CreatedAgent struct {
	Agent       wire.Agent  `json:"agent"`
	Credentials Credentials `json:"credentials"`
}

// Founded is the answer to a member's new organization: the answer to a sign-in, and credentials that no other answer
// contains.
type Founded struct {
	wire.SignedIn `json:",inline"`
	Origin        id.Origin         `json:"origin"`
	LogKey        string            `json:"log_key"`
	Agent         Credentials       `json:"agent"`
	IngestKey     wire.IngestSecret `json:"ingest_key"`
}

// CreatedOrganization is the operator's answer to a new organization.
type CreatedOrganization struct {
	OrganizationID id.Organization   `json:"organization_id"`
	Slug           id.Slug           `json:"slug"`
	Origin         id.Origin         `json:"origin"`
	LogKey         string            `json:"log_key"`
	MembershipID   string            `json:"membership_id"`
	Account        string            `json:"account"` // created or known
	Agent          Credentials       `json:"agent"`
	IngestKey      wire.IngestSecret `json:"ingest_key"`
}
