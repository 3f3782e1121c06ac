package log

import (
	"context"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Asked is an event of which it is asked whether it is stored already, and the
// idempotency key that came with it, "" for none.
type Asked struct {
	Event     id.Event
	Key       string
	IngestKey string // whose idempotency key it is
	Digest    id.Hash
}

// idempotencyText is what is stored of an idempotency key: it belongs to the ingest key
// that it came with, so two senders of an organization can't take each other's. No key of a
// sender has a line end. Stores of before have the sender's text alone.
func idempotencyText(ingestKey, key string) string {
	if key == "" {
		return ""
	}
	return ingestKey + "\n" + key
}

// Replay says of an event that was asked for whether it, or its idempotency key,
// is stored as the very same event. Err is fault.Invalid when one of them is
// stored with another digest.
type Replay struct {
	Known bool
	Err   error
}

// Replays answers for events of a ledger, in their order, with one look-up. An event
// that a frozen predecessor of the ledger holds is known as if it were in the ledger:
// what was acknowledged once is never recorded again.
func (l *Ledgers) Replays(ctx context.Context, t id.Tenant, asked []Asked) []Replay {
	replays := make([]Replay, len(asked))
	if err := l.replays(ctx, t, asked, replays); err != nil {
		for i := range replays {
			replays[i] = Replay{Err: err}
		}
	}
	return replays
}

func (l *Ledgers) replays(ctx context.Context, t id.Tenant, asked []Asked, replays []Replay) (err error) {
	names, of := namesOf(asked)
	for t != 0 && err == nil {
		t, err = l.replaysIn(ctx, t, names, of, asked, replays)
	}
	return err
}

// replaysIn answers from one ledger and returns its predecessor.
func (l *Ledgers) replaysIn(ctx context.Context, t id.Tenant, names []storage.DedupKey, of []int, asked []Asked, replays []Replay) (id.Tenant, error) {
	led, err := l.ledger(ctx, t)
	if err != nil {
		return 0, err
	}
	at, err := l.store.Lookup(ctx, t, names)
	if err != nil {
		return 0, storeError("look up events", err)
	}
	size := led.published.Load().Size()
	for n, index := range at {
		r := &replays[of[n]]
		if index >= size || r.Err != nil { // unknown, or not durable yet: then Append will wait for it
			continue
		}
		known, err := l.sameEvent(ctx, t, index, &asked[of[n]], names[n])
		if err != nil {
			*r = Replay{Err: err}
		} else if known {
			r.Known = true
		}
	}
	return led.identity.Predecessor, nil
}

// namesOf returns the names of events, and of which event each is: its id, its idempotency
// key, and that as stores of before have it.
func namesOf(asked []Asked) (names []storage.DedupKey, of []int) {
	for i, a := range asked {
		names, of = append(names, storage.DedupKey{Text: string(a.Event)}), append(of, i)
		if a.Key != "" {
			names = append(names, storage.DedupKey{Idempotency: true, Text: idempotencyText(a.IngestKey, a.Key)}, storage.DedupKey{Idempotency: true, Text: a.Key})
			of = append(of, i, i)
		}
	}
	return names, of
}

// sameEvent reports whether the event at index, which name leads to, is the one that is
// asked for. fault.Invalid when it is another one, except that an idempotency key of before
// is nobody else's but the ingest key's that its event came with.
func (l *Ledgers) sameEvent(ctx context.Context, t id.Tenant, index id.Index, asked *Asked, name storage.DedupKey) (bool, error) {
	e, err := one(l.store.Events(ctx, t, index, index+1, storage.FieldRecord))
	if err != nil {
		return false, storeError("read known event", err)
	}
	record, err := event.ParseRecord(e.Record)
	if err != nil {
		return false, storeError("read known event", err)
	}
	switch {
	case name.Idempotency && name.Text == asked.Key && record.IngestKeyID != asked.IngestKey:
		return false, nil
	case record.EventDigest == asked.Digest && (name.Idempotency || string(record.EventID) == name.Text):
		return true, nil
	case name.Idempotency:
		return false, fault.New(fault.Invalid, "Idempotency-Key was used with another event")
	}
	return false, fault.New(fault.Invalid, "event_id was used with another event")
}
