package webhook

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// ServiceRecords returns the due entry of a delivery or a position in the service's own partition. Code that copies an
// organization uses it. A missing entry does no harm.
func ServiceRecords(t id.Tenant, r storage.Record) ([]storage.Record, error) {
	if r.Kind != kindDelivery {
		return follow.ServiceRecords(t, r, kindPosition, kindPositionDue)
	}
	v, err := records.Decode[delivery](r)
	if err != nil {
		return nil, err
	}
	return []storage.Record{schedule.Entry{At: v.Value.NextAt, Tenant: t, Name: r.Key}.Record(kindDue)}, nil
}
