package log

import (
	"context"

	"github.com/agentledger/agentledger/chain"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/fault"
	"github.com/agentledger/agentledger/storage"
)

// Asked is an event of which it is asked whether it is stored already, and the
// idempotency key that came with it, "" for none.
type Asked struct {
	Event  id.Event
	Key    string
	Digest id.Hash
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
func (l *Ledgers) replaysIn(ctx context.Context, t id.Tenant, names []storage.Name, of []int, asked []Asked, replays []Replay) (id.Tenant, error) {
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
		if err := l.sameEvent(ctx, t, index, asked[of[n]].Digest, names[n]); err != nil {
			*r = Replay{Err: err}
		} else {
			r.Known = true
		}
	}
	return led.identity.Predecessor, nil
}

// namesOf returns the names of events, and of which event each is.
func namesOf(asked []Asked) (names []storage.Name, of []int) {
	for i, a := range asked {
		names, of = append(names, storage.Name{Text: string(a.Event)}), append(of, i)
		if a.Key != "" {
			names, of = append(names, storage.Name{Idempotency: true, Text: a.Key}), append(of, i)
		}
	}
	return names, of
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
