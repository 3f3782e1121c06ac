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
	// kindDelivery has one record for each delivery that is pending, by its ID, in the organization's partition.
	kindDelivery storage.Kind = "outbox"
	// kindDead has the deliveries that were given up.
	kindDead storage.Kind = "outbox_dead"
	// kindDue has an entry (package schedule) for the next attempt of each delivery.
	kindDue storage.Kind = "outbox_due"
)

// delivery is one message to one address.
type delivery struct {
	Organization id.Organization `json:"organization_id"`
	URL          string          `json:"url"`
	Type         string          `json:"type"`
	Body         jsontext.Value  `json:"body"`
	CreatedAt    id.Instant      `json:"created_at"`
	NextAt       id.Instant      `json:"next_at"` // time of the next attempt, or when it was given up
	Tries        int             `json:"tries"`
	Failure      string          `json:"trouble,omitzero"` // of the last attempt, in the words of this program

	Endpoint EndpointID `json:"endpoint_id,omitzero"` // "" for a callback
	Lane     string     `json:"lane,omitzero"`        // only if Endpoint is set; otherwise it follows from URL
	Approval string     `json:"approval_id,omitzero"` // whose payload the body shows; "" if none
}

// laneName returns the lane of the delivery's receiver.
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
	notified         records.Store[notifiedRecord]
}

func newStores(r storage.RecordStore) stores {
	return stores{
		deliveries: records.New[delivery](r, kindDelivery, unreadableMessage),
		dead:       records.New[delivery](r, kindDead, unreadableMessage),
		keys:       records.New[keyRecord](r, kindKey, unreadableMessage),
		endpoints:  records.New[endpointsRecord](r, kindEndpoints, unreadableMessage),
		attempts:   records.New[Attempt](r, kindAttempt, unreadableMessage),
		health:     records.New[healthRecord](r, kindHealth, unreadableMessage),
		notified:   records.New[notifiedRecord](r, kindNotified, unreadableMessage),
	}
}

// dueEntry returns the due entry of a delivery.
func (d *delivery) dueEntry(t id.Tenant, name ID) schedule.Entry {
	return schedule.Entry{At: d.NextAt, Tenant: t, Name: formatEntryName(name, d)}
}

// noteDue writes the due entries of deliveries before the deliveries are written.
func (o *Sender) noteDue(ctx context.Context, entries ...schedule.Entry) error {
	if err := o.due.NoteEntries(ctx, entries...); err != nil {
		return errUnreadable("note when a delivery is due", err)
	}
	return nil
}

// RecordChecks returns functions, by kind, that report whether a record of this package can be decoded. An import calls
// them before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindDelivery:    records.Check[delivery],
		kindDead:        records.Check[delivery],
		kindKey:         records.Check[keyRecord],
		kindEndpoints:   records.Check[endpointsRecord],
		kindAttempt:     records.Check[Attempt],
		kindHealth:      records.Check[healthRecord],
		kindNotified:    records.Check[notifiedRecord],
		kindPosition:    records.Check[follow.Position],
		kindDue:         records.Check[struct{}],
		kindPositionDue: records.Check[struct{}],
	}
}
