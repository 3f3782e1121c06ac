// Package survey reads a few facts about each of many ledgers by few questions to their store.
//
// Invariants:
//
//   - The questions to an engine that is a Surveyor do not grow with the ledgers, but with pages of a thousand.
//   - A survey is a hint: it may show a record that is not durable yet. Callers read a record again before they act
//     on it.
//   - A ledger that can't be read is reported in its own result and does not affect the others.
package survey

import (
	"context"
	"errors"
	"iter"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Question says which ledgers are asked about, and which of their records are read.
type Question struct {
	// Wanted reports whether a ledger is asked about; nil for all. It MUST be fast.
	Wanted func(id.Tenant) bool

	// Kinds are the kinds of the records that are read. Of each kind that is the one with key "".
	Kinds []storage.Kind
}

// Wants reports whether a ledger is asked about.
func (q Question) Wants(t id.Tenant) bool { return q.Wanted == nil || q.Wanted(t) }

// Ledger is the answer for one ledger.
type Ledger struct {
	Tenant id.Tenant
	Head   storage.Head
	Values map[storage.Kind][]byte // of the records that exist; not to be changed
	Err    error                   // why head or records could not be read; nil when they could
}

// Surveyor is an engine that answers for many ledgers at once.
type Surveyor interface {
	// Survey yields the wanted ledgers in ascending order. The sequence stops at the first error.
	Survey(ctx context.Context, q Question) iter.Seq2[Ledger, error]
}

// Store is an engine that may be a Surveyor.
type Store interface {
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]
	Head(ctx context.Context, t id.Tenant) (storage.Head, error)
	Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error)
}

// Ledgers is Surveyor.Survey of a store. One that is no Surveyor is asked about each ledger by itself.
func Ledgers(ctx context.Context, s Store, q Question) iter.Seq2[Ledger, error] {
	if many, is := s.(Surveyor); is {
		return many.Survey(ctx, q)
	}
	return func(yield func(Ledger, error) bool) {
		for t, err := range s.Tenants(ctx) {
			if err != nil {
				yield(Ledger{}, err)
				return
			}
			if q.Wants(t) && !yield(readOne(ctx, s, t, q.Kinds), nil) {
				return
			}
		}
	}
}

func readOne(ctx context.Context, s Store, t id.Tenant, kinds []storage.Kind) Ledger {
	l := Ledger{Tenant: t, Values: make(map[storage.Kind][]byte, len(kinds))}
	for _, kind := range kinds {
		r, err := s.Get(ctx, t, kind, "")
		switch {
		case err == nil:
			l.Values[kind] = r.Value
		case !errors.Is(err, storage.ErrNotFound):
			l.Err = errors.Join(l.Err, err)
		}
	}
	head, err := s.Head(ctx, t)
	l.Head, l.Err = head, errors.Join(l.Err, err)
	return l
}
