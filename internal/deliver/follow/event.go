package follow

import (
	"fmt"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Event is a stored event with its decoded record and envelope.
type Event struct {
	Index    id.Index
	Record   event.Record
	Envelope *event.Envelope // nil if it is erased
}

// ReadEvent decodes a stored event.
func ReadEvent(e storage.Event) (Event, error) {
	record, err := event.ParseRecord(e.Record)
	if err != nil {
		return Event{}, fmt.Errorf("read event %d: %w", e.Index, err)
	}
	read := Event{Index: e.Index, Record: record}
	if e.Envelope == nil {
		return read, nil
	}
	read.Envelope, err = event.Parse(e.Envelope, event.Options{MaxBytes: len(e.Envelope) + 1, Server: true})
	if err != nil {
		return Event{}, fmt.Errorf("read event %d: %w", e.Index, err)
	}
	return read, nil
}
