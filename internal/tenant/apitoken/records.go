package apitoken

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
)

const (
	// kindTokens has one record for each member with tokens, by account, in the organization's partition.
	kindTokens storage.Kind = "console_token"
	// kindClaim names the member of a token, by the hex SHA-256 of the token, in the service's own partition. A claim
	// without its token does no harm.
	kindClaim storage.Kind = "console_token_claim"
)

type memberRecord struct {
	Tokens []tokenRecord `json:"tokens"` // oldest first
}

type tokenRecord struct {
	ID         ID           `json:"id"`
	Name       string       `json:"name"`
	Role       account.Role `json:"role"`
	Hash       id.Hash      `json:"hash"` // SHA-256 of the token
	Membership string       `json:"membership"`
	CreatedAt  id.Instant   `json:"created_at"`
	ExpiresAt  id.Instant   `json:"expires_at"`
}

func (r *tokenRecord) toToken() Token {
	return Token{ID: r.ID, Name: r.Name, Role: r.Role, CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt}
}

type claimRecord struct {
	Tenant  id.Tenant  `json:"tenant"`
	Account account.ID `json:"account"`
}

// unreadableMessage is the message for a client if tokens cannot be read.
const unreadableMessage = "Tokens can't be read"

// ServiceRecords returns the records in the service's own partition that belong to one of an organization's records,
// for code that copies an organization: the claims of tokens.
func ServiceRecords(t id.Tenant, r storage.Record) (claims []storage.Record, err error) {
	if r.Kind != kindTokens {
		return nil, nil
	}
	held, err := records.Decode[memberRecord](r)
	if err != nil {
		return nil, err
	}
	secrets := make([]id.Hash, len(held.Value.Tokens))
	for i := range held.Value.Tokens {
		secrets[i] = held.Value.Tokens[i].Hash
	}
	return records.ClaimRecords(kindClaim, claimRecord{t, account.ID(r.Key)}, secrets)
}

// RecordChecks returns, by kind, functions that report whether a record of this package can be decoded. An import calls
// them before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindTokens: records.Check[memberRecord],
		kindClaim:  records.Check[claimRecord],
	}
}
