package log_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// surveyed is a store that answers for many ledgers at once, and counts the questions about single ones.
type surveyed struct {
	log.Store
	single, surveys atomic.Int64
}

func (s *surveyed) Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error) {
	s.single.Add(1)
	return s.Store.Get(ctx, t, kind, key)
}

func (s *surveyed) Head(ctx context.Context, t id.Tenant) (storage.Head, error) {
	s.single.Add(1)
	return s.Store.Head(ctx, t)
}

func (s *surveyed) Survey(ctx context.Context, q storage.SurveyQuestion) iter.Seq2[storage.SurveyedLedger, error] {
	s.surveys.Add(1)
	return storage.Survey(ctx, s.Store, q)
}

// Looks at all ledgers ask nothing about one that does nothing: those of the re-verification, and the comparison with
// the anchors.
func TestLooksAtAllLedgers(t *testing.T) {
	store := &surveyed{Store: storagetest.NewModel()}
	w := newWorld(t, store)
	w.burst(20, "e")
	if err := w.auditor.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []id.Tenant{red, blue} {
		if got := w.reverified(tenant).To; got != 20 {
			t.Fatalf("tenant %d is re-verified to %d", tenant, got)
		}
	}
	store.single.Store(0)
	store.surveys.Store(0)
	for range 3 {
		if err := w.auditor.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.ledgers.Census(t.Context(), "organization", slugs); err != nil {
		t.Fatal(err)
	}
	if got := store.single.Load(); got != 0 || store.surveys.Load() == 0 {
		t.Errorf("got %d questions about single ledgers in %d surveys", got, store.surveys.Load())
	}
}
