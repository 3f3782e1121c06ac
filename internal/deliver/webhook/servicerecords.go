package webhook

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// ServiceRecords returns the records of the service's own partition that stand
// there for one of an organization's records, for code that copies an organization: when
// a delivery or a position is due. One that is not there is no damage.
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
