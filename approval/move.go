package approval

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/due"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// ServiceRecords returns the records of the service's own partition that stand
// there for one of an organization's records, for who copies an organization: when
// an open approval is due. One that is not there is no damage.
func ServiceRecords(t id.Tenant, r storage.Record) ([]storage.Record, error) {
	if r.Kind != kindApproval {
		return nil, nil
	}
	var stored record
	if err := json.Unmarshal(r.Value, &stored); err != nil {
		return nil, fmt.Errorf("approval: %w", storage.ErrCorrupt)
	}
	if !stored.Status.Open() {
		return nil, nil
	}
	return []storage.Record{due.Entry{At: stored.ExpiresAt, Tenant: t, Name: r.Key}.Record(kindDue)}, nil
}
