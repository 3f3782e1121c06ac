package streamexport

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/storage"
)

const (
	// kindExport has the export of an organization, under the key "".
	kindExport storage.Kind = "stream_export"
	// kindStatus has the results of the latest attempts, under the key "".
	kindStatus storage.Kind = "stream_export_status"
	// kindTest has the latest requested test, under the key "".
	kindTest storage.Kind = "stream_export_test"
	// kindPosition has the position (package follow), under the key follower.
	kindPosition storage.Kind = "stream_export_position"
	// kindDue has the due entries of the positions, in the service's own partition.
	kindDue storage.Kind = "stream_export_due"
)

// follower is the name of an organization's follower.
const follower = "export"

// exportRecord is the export of an organization.
type exportRecord struct {
	URL         []byte     `json:"url"`     // sealed
	Headers     []byte     `json:"headers"` // sealed: a JSON object of texts
	HeaderNames []string   `json:"header_names"`
	Format      Format     `json:"format"`
	Encoding    Encoding   `json:"encoding"`
	Payloads    bool       `json:"payloads"`
	Active      bool       `json:"active"`
	ChangedAt   id.Instant `json:"changed_at"`
	ChangedBy   string     `json:"changed_by"`
}

// statusRecord is the results of the latest attempts.
type statusRecord struct {
	Sent      uint64     `json:"sent"`     // accepted events, including repeated ones
	Rejected  uint64     `json:"rejected"` // permanently rejected events
	SuccessAt id.Instant `json:"success_at,omitzero"`
	Last      Try        `json:"last"`
	Test      Try        `json:"test"` // the latest test
}

// Try is one request to the receiver. The zero value means that there was none.
type Try struct {
	At      id.Instant `json:"at,omitzero"`
	Status  int        `json:"status,omitzero"`  // 0 without a response
	Failure string     `json:"trouble,omitzero"` // "" if the receiver accepted it
}

// testRecord is the latest test delivery that a user requested.
type testRecord struct {
	AskedAt id.Instant `json:"asked_at"`
}

func sealContext(o id.Organization) string { return "stream-export\n" + o.String() }

// SealedExport describes the record with the address and the headers of an organization's export.
func SealedExport() seal.Record {
	return seal.RecordOf(kindExport, "stream export", seal.ForOrganization(sealContext),
		func(r *exportRecord) []*[]byte { return []*[]byte{&r.URL, &r.Headers} })
}

// ServiceRecords returns the due entry of an organization's export in the service's own partition. Code that copies an
// organization uses it.
func ServiceRecords(t id.Tenant, r storage.Record) ([]storage.Record, error) {
	return follow.ServiceRecords(t, r, kindPosition, kindDue)
}

// RecordChecks returns functions, by kind, that report whether a record of this package can be decoded. An import calls
// them before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindExport:   records.Check[exportRecord],
		kindStatus:   records.Check[statusRecord],
		kindTest:     records.Check[testRecord],
		kindPosition: records.Check[follow.Position],
		kindDue:      records.Check[struct{}],
	}
}
