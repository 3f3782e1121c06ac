package org_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/storage"
)

// watchedStore counts reads and, as an engine with a watch, the writes of some kinds.
type watchedStore struct {
	storage.RecordStore
	reads  atomic.Int64
	writes atomic.Uint64
	kinds  []storage.Kind
}

func (s *watchedStore) Get(ctx context.Context, t id.Tenant, k storage.Kind, key string) (storage.Record, error) {
	s.reads.Add(1)
	return s.RecordStore.Get(ctx, t, k, key)
}

func (s *watchedStore) watch(kinds ...storage.Kind) func() uint64 {
	s.kinds = kinds
	return s.writes.Load
}

// With a watch, a key is read again after a write of a record that it depends on, and not before.
func TestWatchedKeys(t *testing.T) {
	w := newWorld(t)
	store := &watchedStore{RecordStore: w.Store}
	orgs, err := org.New(org.Options{Records: store, Events: w.SystemEvents, Ledgers: w.Ledgers, Clock: w.Clock,
		Watch: store.watch})
	if err != nil {
		t.Fatal(err)
	}
	if want := []storage.Kind{"ingest_key_claim", "ingest_key", "org"}; !slices.Equal(store.kinds, want) {
		t.Errorf("watched: got %v, want %v", store.kinds, want)
	}
	uses := func(step string, tenant id.Tenant, wantReads int64) {
		t.Helper()
		before := store.reads.Load()
		caller, err := orgs.Authenticate(t.Context(), w.token[tenant].Reveal())
		if err != nil || caller.Tenant != tenant {
			t.Fatalf("%s: got %v, %v, want the caller of %d", step, caller, err, tenant)
		}
		if got := store.reads.Load() - before; got != wantReads {
			t.Errorf("%s: got %d reads, want %d", step, got, wantReads)
		}
	}
	uses("red's first use", red, 3)
	uses("blue's first use", blue, 3)
	w.Pass(time.Hour)
	uses("nothing was written", red, 0)
	uses("nothing was written", blue, 0)

	// Revoked by other Orgs of the same process.
	if err := w.orgs.RevokeIngestKey(t.Context(), red, ann, w.keyID[red]); err != nil {
		t.Fatal(err)
	}
	store.writes.Add(1)
	w.unauthorized("revoked elsewhere", orgs, w.token[red].Reveal())
	uses("the neighbour's write", blue, 3)
	w.Pass(time.Hour)
	uses("after the neighbour's write", blue, 0)

	// The watch reports more than the keys of one organization.
	store.writes.Add(1)
	_, err = orgs.Authenticate(t.Context(), "apl_live_unknown")
	refused(t, "an unknown key", err, fault.Unauthorized, "Invalid API key")
	w.Pass(time.Second)
	uses("after a write", blue, 3)
	uses("again", blue, 0)
}
