package approval

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/openset"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// ServiceRecords returns the due entries of an open approval in the service's own partition. Code that copies an
// organization uses it. A missing entry does no harm.
func ServiceRecords(t id.Tenant, r storage.Record) ([]storage.Record, error) {
	if r.Kind != kindApproval {
		return nil, nil
	}
	v, err := records.Decode[record](r)
	if err != nil || !v.Value.Status.Open() {
		return nil, err
	}
	var due []storage.Record
	for _, e := range v.Value.dueEntries(t, r.Key) {
		due = append(due, e.Record(kindDue))
	}
	return due, nil
}

// RecordChecks returns functions, by kind, that report whether a record of this package can be decoded. An import calls
// them before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindApproval: records.Check[record],
		kindOpen:     records.Check[openRecord],
		kindIntent:   records.Check[openRecord],
		kindTally:    openset.Check[tallyRecord, shareRecord],
		kindNewest:   records.Check[listRecord],
		kindDue:      records.Check[struct{}],
		kindAction:   records.Check[struct{}],
		kindGrantKey: records.Check[grantKeyRecord],
	}
}
