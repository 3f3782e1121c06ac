package log

import (
	"context"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Asked is an event to look for, and the idempotency key that came with it, "" for none.
type Asked struct {
	Event     id.Event
	Key       string
	IngestKey string // whose idempotency key it is
	Digest    id.Hash
}

// idempotencyText is the stored form of an idempotency key. A key belongs to the ingest
// key that it came with, so that two senders of an organization can't take each other's.
// No key of a sender has a line end. Older stores have the sender's text alone.
func idempotencyText(ingestKey, key string) string {
	if key == "" {
		return ""
	}
	return ingestKey + "\n" + key
}

// Replay is the answer for one event: Known says that the event, or its idempotency key, is stored as the very same
// event. Err is fault.Invalid when either is stored with another digest.
type Replay struct {
	Known bool
	Err   error
}

// Replays answers for events of a ledger, in their order, with one look-up. An event that a frozen predecessor holds
// is known as if it were in the ledger, because an acknowledged event is never recorded again.
func (l *Ledgers) Replays(ctx context.Context, t id.Tenant, asked []Asked) []Replay {
	replays := make([]Replay, len(asked))
	if err := l.findReplays(ctx, t, asked, replays); err != nil {
		for i := range replays {
			replays[i] = Replay{Err: err}
		}
	}
	return replays
}

func (l *Ledgers) findReplays(ctx context.Context, t id.Tenant, asked []Asked, replays []Replay) (err error) {
	if err := l.fences.Check(t); err != nil {
		return err
	}
	names, of := listKeysOf(asked)
	for t != 0 && err == nil {
		t, err = l.findReplaysIn(ctx, t, names, of, asked, replays)
	}
	return err
}

// findReplaysIn answers from one ledger and returns its predecessor.
func (l *Ledgers) findReplaysIn(ctx context.Context, t id.Tenant, names []storage.DedupKey, of []int, asked []Asked, replays []Replay) (id.Tenant, error) {
	led, err := l.readLedger(ctx, t)
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
		known, err := l.isSameEvent(ctx, t, index, &asked[of[n]], names[n])
		if err != nil {
			*r = Replay{Err: err}
		} else if known {
			r.Known = true
		}
	}
	return led.identity.Predecessor, nil
}

// listKeysOf returns the names of events, and of which event each is: its id, its idempotency
// key, and that as stores of before have it.
func listKeysOf(asked []Asked) (names []storage.DedupKey, of []int) {
	names = make([]storage.DedupKey, 0, len(asked))
	for i, a := range asked {
		names, of = append(names, storage.DedupKey{Text: string(a.Event)}), append(of, i)
		if a.Key != "" {
			names = append(names, storage.DedupKey{Idempotency: true, Text: idempotencyText(a.IngestKey, a.Key)}, storage.DedupKey{Idempotency: true, Text: a.Key})
			of = append(of, i, i)
		}
	}
	return names, of
}

// isSameEvent reports whether the event at index, which name leads to, is the one that is
// asked for. It returns fault.Invalid when it is another one. An idempotency key of an
// older store belongs to the ingest key of its event alone.
func (l *Ledgers) isSameEvent(ctx context.Context, t id.Tenant, index id.Index, asked *Asked, name storage.DedupKey) (bool, error) {
	e, err := ReadEvent(ctx, l.store, t, index, storage.FieldRecord)
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
