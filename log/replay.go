package log

import (
	"context"

	"github.com/agentledger/agentledger/chain"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/fault"
	"github.com/agentledger/agentledger/storage"
)

// Replayed reports whether an event, or the idempotency key that came with it,
// is stored already, and stored as the very same event. Neither known: false.
// Known, but with another digest: fault.Invalid. key is "" for none.
func (l *Ledgers) Replayed(ctx context.Context, t id.Tenant, event id.Event, key string, digest id.Hash) (bool, error) {
	led, err := l.ledger(ctx, t)
	if err != nil {
		return false, err
	}
	names := []storage.Name{{Text: string(event)}}
	if key != "" {
		names = append(names, storage.Name{Idempotency: true, Text: key})
	}
	at, err := l.store.Lookup(ctx, t, names)
	if err != nil {
		return false, storeError("look up event", err)
	}
	size := led.published.Load().Size()
	known := false
	for i, index := range at {
		if index >= size { // unknown, or not durable yet: then Append will wait for it
			continue
		}
		if err := l.sameEvent(ctx, t, index, digest, names[i]); err != nil {
			return false, err
		}
		known = true
	}
	return known, nil
}

// sameEvent returns fault.Invalid unless the event at index is the one with
// this digest (and, for an event id, of that very id).
func (l *Ledgers) sameEvent(ctx context.Context, t id.Tenant, index id.Index, digest id.Hash, name storage.Name) error {
	e, err := one(l.store.Events(ctx, t, index, index+1, storage.Records))
	if err != nil {
		return storeError("read known event", err)
	}
	record, err := chain.ParseRecord(e.Record)
	if err != nil {
		return storeError("read known event", err)
	}
	switch {
	case record.EventDigest == digest && (name.Idempotency || string(record.EventID) == name.Text):
		return nil
	case name.Idempotency:
		return fault.New(fault.Invalid, "Idempotency-Key was used with another event")
	}
	return fault.New(fault.Invalid, "event_id was used with another event")
}
