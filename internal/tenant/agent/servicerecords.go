package agent

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// ServiceRecords returns the records of the service's own partition that stand
// there for one of an organization's records, for code that copies an organization.
func ServiceRecords(t id.Tenant, r storage.Record) ([]storage.Record, error) {
	value, err := json.Marshal(claimRecord{Tenant: t})
	if err != nil {
		return nil, fmt.Errorf("claims: %w", err)
	}
	switch r.Kind {
	case kindAgent:
		return []storage.Record{{Kind: kindAgentClaim, Key: r.Key, Value: value}}, nil
	case kindUsed:
		name, public := strings.CutPrefix(r.Key, "public/")
		if !public {
			return nil, nil
		}
		b, err := hex.DecodeString(name)
		if err != nil || len(b) != 32 {
			return nil, fmt.Errorf("used public key: %w", storage.ErrCorrupt)
		}
		return []storage.Record{{Kind: kindPublicClaim, Key: publicClaimName([32]byte(b), t), Value: value}}, nil
	}
	return nil, nil
}
