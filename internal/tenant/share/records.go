package share

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

const (
	// kindLinks has one record, under key "", from an organization's first link on.
	kindLinks storage.Kind = "share"
	// kindClaim names the organization of a link, by the hex SHA-256 of its secret, in the service's own partition
	// (records.Claims).
	kindClaim storage.Kind = "share_claim"
)

type linksRecord struct {
	Links []linkRecord `json:"links"` // oldest first
}

type linkRecord struct {
	Link
	Hash id.Hash `json:"hash"` // SHA-256 of the secret
}

type claimRecord struct {
	Tenant id.Tenant `json:"tenant"`
}

// unreadableMessage is the message for a client if links cannot be read.
const unreadableMessage = "Links can't be read"

// ServiceRecords returns the records in the service's own partition that belong to one of an organization's records,
// for code that copies an organization: the claims of links.
func ServiceRecords(t id.Tenant, r storage.Record) (claims []storage.Record, err error) {
	if r.Kind != kindLinks {
		return nil, nil
	}
	held, err := records.Decode[linksRecord](r)
	if err != nil {
		return nil, err
	}
	secrets := make([]id.Hash, len(held.Value.Links))
	for i := range held.Value.Links {
		secrets[i] = held.Value.Links[i].Hash
	}
	return records.ClaimRecords(kindClaim, claimRecord{t}, secrets)
}

// RecordChecks returns, by kind, functions that report whether a record of this package can be decoded. An import calls
// them before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindLinks: records.Check[linksRecord],
		kindClaim: records.Check[claimRecord],
	}
}
