package workflow

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/flow/openset"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// ServiceRecords returns the entries of an organization's record in the service's own partition: the
// due entry of a running run. Packages that copy an organization use it. The store may have an
// earlier entry in its place.
func ServiceRecords(t id.Tenant, r storage.Record) ([]storage.Record, error) {
	if r.Kind != kindRun {
		return nil, nil
	}
	run, err := records.Decode[record](r)
	if err != nil || run.Value.Status != Running {
		return nil, err
	}
	return []storage.Record{schedule.Entry{At: run.Value.nextDeadline(), Tenant: t, Name: r.Key}.Record(kindDue)}, nil
}

// OfLog reports whether records of a kind are about runs whose events lie in one log: a
// successor does not get them, since no run can end where it did not begin.
func OfLog(kind storage.Kind) bool {
	switch kind {
	case kindRun, kindStep, kindList, kindLate, kindExternal, kindTally, kindNewest:
		return true
	}
	return false
}

// RecordChecks returns, by kind, what reports whether a record of this package can be read. An import asks it before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindRun:      records.Check[record],
		kindStep:     records.Check[stepRecord],
		kindList:     records.Check[listRecord],
		kindLate:     records.Check[lateRecord],
		kindExternal: records.Check[externalRecord],
		kindNewest:   records.Check[newestRecord],
		kindTally:    openset.Check[tallyRecord, shareRecord],
		kindDue:      records.Check[struct{}],
	}
}
