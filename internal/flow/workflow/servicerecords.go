package workflow

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/flow/openset"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// ServiceRecords returns the due entry of a running run in the service's own partition. Code that copies an
// organization uses it. The store may contain an earlier entry instead.
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

// OfLog reports whether records of a kind belong to runs whose events are in one log. A successor does not get them,
// because a run must end in the log in which it started.
func OfLog(kind storage.Kind) bool {
	switch kind {
	case kindRun, kindStep, kindList, kindLate, kindExternal, kindTally, kindNewest:
		return true
	}
	return false
}

// RecordChecks returns functions, by kind, that report whether a record of this package can be decoded. An import calls
// them before it writes.
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
