package agent

import (
	"encoding/hex"
	"fmt"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/internal/records"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// ServiceRecords returns the entries of an organization's record in the service's own partition, for code that copies
// an organization.
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

// RecordChecks returns a function for each kind of record of this package that reports whether such a record can be
// decoded. An import calls it before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindAgent:       records.Check[agentRecord],
		kindKey:         checkKey,
		kindUsed:        records.Check[struct{}],
		kindBridge:      records.Check[bridgeRecord],
		kindAgentClaim:  records.Check[claimRecord],
		kindPublicClaim: records.Check[claimRecord],
	}
}

func checkKey(r storage.Record) error {
	agent, name, _ := strings.Cut(r.Key, "/")
	k, err := decodeKeyRecord(id.Agent(agent), r)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", storage.ErrCorrupt, err)
	case string(k.ID) != name:
		return fmt.Errorf("key: %w: key_id differs from the record's key", storage.ErrCorrupt)
	case k.Status != Active && k.Status != Retired && k.Status != Revoked:
		return fmt.Errorf("key: %w: unknown status", storage.ErrCorrupt)
	}
	public := k.Public.Bytes()
	if _, err := edkey.ParsePublic(public[:]); err != nil {
		return fmt.Errorf("key: %w: %w", storage.ErrCorrupt, err)
	}
	return nil
}

// FactKinds are the kinds of records that have facts.
var FactKinds = []storage.Kind{kindAgent, kindKey}

// Facts returns the facts in a record that events of the log state too (package recordcheck).
func Facts(r storage.Record) (map[string]string, error) {
	switch r.Kind {
	case kindAgent:
		a, err := decodeAgentRecord(r)
		return map[string]string{
			"agent/" + r.Key:               "exists",
			"agent/" + r.Key + "/name":     a.DisplayName,
			"agent/" + r.Key + "/inactive": fmt.Sprint(a.Inactive),
		}, err
	case kindKey:
		agent, _, _ := strings.Cut(r.Key, "/")
		k, err := decodeKeyRecord(id.Agent(agent), r)
		facts := map[string]string{
			"agent_key/" + r.Key: k.Multikey, "agent_key/" + r.Key + "/status": string(k.Status),
			"agent_key/" + r.Key + "/custody": string(k.Custody),
		}
		if k.CompromisedFrom != nil {
			facts["agent_key/"+r.Key+"/compromised_from"] = fmt.Sprint(*k.CompromisedFrom)
		}
		return facts, err
	}
	return nil, nil
}
