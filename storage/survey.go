package storage

import (
	"context"
	"errors"
	"iter"

	"github.com/agentledger/agentledger/id"
)

// SurveyQuestion selects the ledgers of a survey and the records to read for each of them.
type SurveyQuestion struct {
	// Wanted reports whether a ledger is included. If nil, all are. It must be fast.
	Wanted func(id.Tenant) bool

	// Kinds are the kinds of the records that are read: of each kind, the record with key "".
	Kinds []Kind
}

// Wants reports whether a ledger is included.
func (q SurveyQuestion) Wants(t id.Tenant) bool { return q.Wanted == nil || q.Wanted(t) }

// SurveyedLedger is the result for one ledger.
type SurveyedLedger struct {
	Tenant id.Tenant
	Head   Head
	Values map[Kind][]byte // of the records that exist; must not be modified
	Err    error           // why the head or a record could not be read, or nil
}

// Surveyor is implemented by engines that read facts about many ledgers at once, so that the number of queries grows
// with pages of a thousand ledgers instead of with the ledgers.
type Surveyor interface {
	// Survey yields the wanted ledgers in ascending order. The sequence ends at the first error.
	Survey(ctx context.Context, q SurveyQuestion) iter.Seq2[SurveyedLedger, error]
}

// SurveyStore is an engine that may be a Surveyor.
type SurveyStore interface {
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]
	Head(ctx context.Context, t id.Tenant) (Head, error)
	Get(ctx context.Context, t id.Tenant, kind Kind, key string) (Record, error)
}

// Survey reads a few facts about each of many ledgers. It uses Surveyor.Survey if the store has it, and otherwise reads
// the ledgers one by one.
//
// A survey is a hint: it may show a record that is not durable yet, so callers must read a record again before they act
// on it. A ledger that cannot be read is reported in its own result and does not affect the others.
func Survey(ctx context.Context, s SurveyStore, q SurveyQuestion) iter.Seq2[SurveyedLedger, error] {
	if many, is := s.(Surveyor); is {
		return many.Survey(ctx, q)
	}
	return func(yield func(SurveyedLedger, error) bool) {
		for t, err := range s.Tenants(ctx) {
			if err != nil {
				yield(SurveyedLedger{}, err)
				return
			}
			if q.Wants(t) && !yield(readOne(ctx, s, t, q.Kinds), nil) {
				return
			}
		}
	}
}

func readOne(ctx context.Context, s SurveyStore, t id.Tenant, kinds []Kind) SurveyedLedger {
	l := SurveyedLedger{Tenant: t, Values: make(map[Kind][]byte, len(kinds))}
	for _, kind := range kinds {
		r, err := s.Get(ctx, t, kind, "")
		switch {
		case err == nil:
			l.Values[kind] = r.Value
		case !errors.Is(err, ErrNotFound):
			l.Err = errors.Join(l.Err, err)
		}
	}
	head, err := s.Head(ctx, t)
	l.Head, l.Err = head, errors.Join(l.Err, err)
	return l
}
