package outbox

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/due"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// ServiceRecords returns the records of the service's own partition that stand
// there for one of an organization's records, for who copies an organization: when
// a delivery is due. One that is not there is no damage.
func ServiceRecords(t id.Tenant, r storage.Record) ([]storage.Record, error) {
	if r.Kind != kindDelivery {
		return nil, nil
	}
	var d delivery
	if err := json.Unmarshal(r.Value, &d); err != nil {
		return nil, fmt.Errorf("delivery: %w", storage.ErrCorrupt)
	}
	return []storage.Record{due.Entry{At: d.NextAt, Tenant: t, Name: r.Key}.Record(kindDue)}, nil
}
