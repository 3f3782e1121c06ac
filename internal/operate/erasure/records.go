package erasure

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

const (
	// kindErasure has one record for each erasure, under records.ReverseKey of its ID: the latest comes first.
	kindErasure storage.Kind = "erasure"
	// kindTally has one record under key "": the number of erasures that have not ended.
	kindTally storage.Kind = "erasure_tally"
	// kindRetention has one record under key "" once the organization has had a retention.
	kindRetention storage.Kind = "retention"
	// kindDue has an entry (package schedule) for each erasure that has not ended, by its ID, and one for each
	// retention, by retentionName.
	kindDue storage.Kind = "erasure_due"
)

// retentionName is the name of the due entry of a retention.
const retentionName = "retention"

// OfLog reports whether records of a kind belong to one log: erasures contain indices of the log, so they are not
// copied to its successor.
func OfLog(kind storage.Kind) bool { return kind == kindErasure || kind == kindTally }

// phase is the current step of an erasure.
type phase int

// The phases, in order. Their numbers are stored.
const (
	phaseApprovals phase = iota // payloads of approvals, by the agent, trace, principal or subject of the request
	phaseEvents                 // envelopes, and payloads of approvals for the same actions
	phaseTexts                  // texts in deliveries
	phaseDone
)

// bound is the stored form of index.Bound.
type bound struct {
	Given bool       `json:"given,omitzero"`
	At    id.Instant `json:"at,omitzero"`
	Index id.Index   `json:"index,omitzero"`
}

type record struct {
	Reason  Reason     `json:"reason"`
	AskedBy string     `json:"asked_by"` // account
	AskedAt id.Instant `json:"asked_at"`

	// Exactly one of these is set. Of the matching events, those in [From, To) below End are erased.
	Event     id.Event    `json:"event_id,omitzero"`
	Approval  approval.ID `json:"approval_id,omitzero"` // of Event, if it is the service's own event about an approval
	Agent     id.Agent    `json:"agent_id,omitzero"`
	Trace     id.Trace    `json:"trace_id,omitzero"`
	Principal string      `json:"principal,omitzero"`    // deleted at the end
	Subject   string      `json:"on_behalf_of,omitzero"` // deleted at the end
	Issuer    string      `json:"issuer,omitzero"`       // deleted at the end
	By        string      `json:"by"`                    // name of the member above
	From      bound       `json:"from,omitzero"`
	To        bound       `json:"to,omitzero"`
	End       id.Index    `json:"end"` // size of the log at the request

	Phase     phase       `json:"phase"`
	Held      bool        `json:"held,omitzero"`       // by a legal hold at the last attempt
	Next      id.Index    `json:"next"`                // events below it are done
	Before    approval.ID `json:"before,omitzero"`     // approvals from here on are done
	Matched   uint64      `json:"matched"`             // events
	Erased    uint64      `json:"erased"`              // by this erasure
	Already   uint64      `json:"already"`             // whose envelope was already erased
	Approvals uint64      `json:"approvals"`           // payloads erased by this erasure
	Texts     uint64      `json:"deliveries"`          // that were changed
	TextsGone bool        `json:"texts_gone,omitzero"` // deliveries were changed, but not all objects
	EndedAt   id.Instant  `json:"ended_at,omitzero"`
}

// filter returns the filter of the events.
func (r *record) filter() index.Filter {
	f := index.Filter{Agent: r.Agent, Trace: r.Trace, Principal: r.Principal,
		Subject: r.Subject, Issuer: r.Issuer,
		From: index.Bound(r.From), To: index.Bound(r.To)}
	return f
}

type tallyRecord struct {
	Open int `json:"open"`
}

// retentionRecord tracks how far the envelopes of an organization are erased because of their age.
type retentionRecord struct {
	Origin   id.Origin   `json:"origin"`
	Next     id.Index    `json:"next"` // events of that log below it are done
	Approval approval.ID `json:"approval_id,omitzero"`
	Texts    bool        `json:"texts,omitzero"` // deliveries must be examined
	NextAt   id.Instant  `json:"next_at"`        // latest time of the next run
}

// ServiceRecords returns the due entry for an organization's record in the service's own partition, for code that
// copies an organization. A missing entry is not damage.
func ServiceRecords(t id.Tenant, r storage.Record) ([]storage.Record, error) {
	switch r.Kind {
	case kindErasure:
		v, err := records.Decode[record](r)
		if err != nil || v.Value.Phase == phaseDone {
			return nil, err
		}
		entry := schedule.Entry{At: v.Value.AskedAt, Tenant: t, Name: records.ReverseKey(r.Key)}
		return []storage.Record{entry.Record(kindDue)}, nil
	case kindRetention:
		v, err := records.Decode[retentionRecord](r)
		if err != nil {
			return nil, err
		}
		entry := schedule.Entry{At: v.Value.NextAt, Tenant: t, Name: retentionName}
		return []storage.Record{entry.Record(kindDue)}, nil
	}
	return nil, nil
}

// RecordChecks returns a function for each kind of record of this package that reports whether such a record can be
// decoded. An import calls it before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindErasure:   records.Check[record],
		kindTally:     records.Check[tallyRecord],
		kindRetention: records.Check[retentionRecord],
		kindDue:       records.Check[struct{}],
	}
}
