package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/due"
	"github.com/agentledger/agentledger/id"
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
}

func (d *delivery) change(kind storage.Kind, name ID, at uint64) (storage.Change, error) {
	value, err := json.Marshal(d)
	if err != nil {
		return storage.Change{}, fmt.Errorf("encode delivery: %w", err)
	}
	return storage.Change{Kind: kind, Key: string(name), Value: value, If: at}, nil
}

// read returns a delivery and its record's version, 0 when there is none.
func (o *Outbox) read(ctx context.Context, t id.Tenant, kind storage.Kind, name ID) (d delivery, at uint64, err error) {
	r, err := o.records.Get(ctx, t, kind, string(name))
	if errors.Is(err, storage.ErrNotFound) {
		return d, 0, nil
	}
	if err == nil {
		err = json.Unmarshal(r.Value, &d)
	}
	if err != nil {
		return d, 0, unreadable("read delivery", err)
	}
	return d, r.Version, nil
}

func (o *Outbox) writeDue(ctx context.Context, t id.Tenant, name ID, at id.Instant) error {
	if err := o.due.Note(ctx, due.Entry{At: at, Tenant: t, Name: string(name)}); err != nil {
		return unreadable("note when a delivery is due", err)
	}
	return nil
}
