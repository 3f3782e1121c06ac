package webhook

import (
	"context"
	"github.com/agentledger/agentledger/internal/deliver/follow"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

const (
	// kindDelivery has one record for each delivery that is to be made, by its id,
	// in the organization's partition.
	kindDelivery storage.Kind = "outbox"
	// kindDead has those that are given up.
	kindDead storage.Kind = "outbox_dead"
	// kindDue has an entry (package due) for each delivery, of when it is to be tried.
	kindDue storage.Kind = "outbox_due"
)

// delivery is one message to one address.
type delivery struct {
	Organization id.Organization `json:"organization_id"`
	URL          string          `json:"url"`
	Type         string          `json:"type"`
	Body         jsontext.Value  `json:"body"`
	CreatedAt    id.Instant      `json:"created_at"`
	NextAt       id.Instant      `json:"next_at"` // when it is to be tried, or when it was given up
	Tries        int             `json:"tries"`
	Trouble      string          `json:"trouble,omitzero"` // of the last try, in our words

	Endpoint EndpointID `json:"endpoint_id,omitzero"` // "" for a callback
	Lane     string     `json:"lane,omitzero"`        // of a delivery to an endpoint, which has no URL of its own
}

// laneName is the receiver that a delivery goes to.
func (d *delivery) laneName() string {
	if d.Endpoint != "" {
		return d.Lane
	}
	return receiverAddress(d.URL)
}

// stores are the records of each kind.
type stores struct {
	deliveries, dead records.Store[delivery]
	keys             records.Store[keyRecord]
	endpoints        records.Store[endpointsRecord]
	attempts         records.Store[Attempt]
	health           records.Store[healthRecord]
	told             records.Store[toldRecord]
}

func newStores(r storage.RecordStore) stores {
	return stores{
		deliveries: records.New[delivery](r, kindDelivery, unreadableMessage),
		dead:       records.New[delivery](r, kindDead, unreadableMessage),
		keys:       records.New[keyRecord](r, kindKey, unreadableMessage),
		endpoints:  records.New[endpointsRecord](r, kindEndpoints, unreadableMessage),
		attempts:   records.New[Attempt](r, kindAttempt, unreadableMessage),
		health:     records.New[healthRecord](r, kindHealth, unreadableMessage),
		told:       records.New[toldRecord](r, kindTold, unreadableMessage),
	}
}

// dueEntry returns the entry of when a delivery is due.
func (d *delivery) dueEntry(t id.Tenant, name ID) schedule.Entry {
	return schedule.Entry{At: d.NextAt, Tenant: t, Name: formatEntryName(name, d)}
}

// noteDue notes when deliveries are due, before they are written.
func (o *Sender) noteDue(ctx context.Context, entries ...schedule.Entry) error {
	if err := o.due.NoteEntries(ctx, entries...); err != nil {
		return errUnreadable("note when a delivery is due", err)
	}
	return nil
}

// RecordChecks returns, by kind, what reports whether a record of this package can be read. An import asks it before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindDelivery:    records.Check[delivery],
		kindDead:        records.Check[delivery],
		kindKey:         records.Check[keyRecord],
		kindEndpoints:   records.Check[endpointsRecord],
		kindAttempt:     records.Check[Attempt],
		kindHealth:      records.Check[healthRecord],
		kindTold:        records.Check[toldRecord],
		kindPosition:    records.Check[follow.Position],
		kindDue:         records.Check[struct{}],
		kindPositionDue: records.Check[struct{}],
	}
}
