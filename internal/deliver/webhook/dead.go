package webhook

import (
	"context"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// MaxDead is the number of dead letters of an organization that are kept.
const MaxDead = 1000

// DeadLetter is a delivery that was given up.
type DeadLetter struct {
	ID        ID
	URL       string     // "" for a delivery to an endpoint
	Endpoint  EndpointID // "" for a callback
	Type      string
	CreatedAt id.Instant
	GivenUpAt id.Instant
	Tries     int
	Failure   string
}

// DeadLetters returns at most limit dead letters after the given one, oldest first.
func (o *Sender) DeadLetters(ctx context.Context, t id.Tenant, after ID, limit int) ([]DeadLetter, error) {
	found, err := o.dead.List(ctx, t, records.After(string(after)), limit)
	letters := make([]DeadLetter, len(found))
	for i := range found {
		d := &found[i].Value
		if d.Failure == formerlyRefused {
			d.Failure = noAnswer
		}
		letters[i] = DeadLetter{
			ID:        ID(found[i].Key),
			URL:       d.URL,
			Endpoint:  d.Endpoint,
			Type:      d.Type,
			CreatedAt: d.CreatedAt,
			GivenUpAt: d.NextAt,
			Tries:     d.Tries,
			Failure:   d.Failure,
		}
	}
	return letters, err
}

// Replay turns a dead letter into a delivery with all its attempts again. It returns fault.NotFound if there is no such
// letter.
func (o *Sender) Replay(ctx context.Context, t id.Tenant, name ID) error {
	dead, err := o.dead.Get(ctx, t, string(name))
	if err != nil {
		return err
	}
	if !dead.Exists() {
		return fault.New(fault.NotFound, "Not found")
	}
	d := &dead.Value
	d.Tries, d.NextAt, d.Failure = 0, o.currentTime(), ""
	again, err := o.deliveries.Put(records.Versioned[delivery]{
		Key:     string(name),
		Value:   *d,
		Version: storage.AnyVersion,
	})
	if err != nil {
		return err
	}
	if err := o.noteDue(ctx, d.dueEntry(t, name)); err != nil {
		return err
	}
	removed := storage.Change{Kind: kindDead, Key: string(name), If: dead.Version}
	if err := o.records.Write(ctx, t, []storage.Change{removed, again}); err != nil {
		return errUnreadable("replay delivery", err)
	}
	return nil
}
