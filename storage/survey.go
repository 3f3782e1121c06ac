package storage

import (
	"context"
	"errors"
	"iter"

	"github.com/agentledger/agentledger/id"
)

// SurveyQuestion says which ledgers are asked about, and which of their records are read.
type SurveyQuestion struct {
	// Wanted reports whether a ledger is asked about; nil for all. It MUST be fast.
	Wanted func(id.Tenant) bool

	// Kinds are the kinds of the records that are read. Of each kind that is the one with key "".
	Kinds []Kind
}

// Wants reports whether a ledger is asked about.
func (q SurveyQuestion) Wants(t id.Tenant) bool { return q.Wanted == nil || q.Wanted(t) }

// SurveyedLedger is the answer for one ledger.
type SurveyedLedger struct {
	Tenant id.Tenant
	Head   Head
	Values map[Kind][]byte // of the records that exist; not to be changed
	Err    error           // why head or records could not be read; nil when they could
}

// Surveyor is an engine that answers for many ledgers at once.
type Surveyor interface {
	// Survey yields the wanted ledgers in ascending order. The sequence stops at the first error.
	Survey(ctx context.Context, q SurveyQuestion) iter.Seq2[SurveyedLedger, error]
}

// SurveyStore is an engine that may be a Surveyor.
type SurveyStore interface {
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]
	Head(ctx context.Context, t id.Tenant) (Head, error)
	Get(ctx context.Context, t id.Tenant, kind Kind, key string) (Record, error)
}

// Survey is Surveyor.Survey of a store. One that is no Surveyor is asked about each ledger by itself.
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
