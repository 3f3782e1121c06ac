package pgstore_test

import (
	"errors"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// warmOutcomes is an engine that records the results of appends, by stream.
type warmOutcomes struct {
	storage.Engine
	ended map[int]chan error
}

// Append implements storage.Engine.
func (o *warmOutcomes) Append(batches []storage.Batch) storage.Pending {
	return waiting{o.Engine.Append(batches), o.ended[o.Stream(batches[0].Tenant)]}
}

type waiting struct {
	storage.Pending
	ended chan error
}

// Wait implements storage.Pending.
func (w waiting) Wait() []error {
	all := w.Pending.Wait()
	w.ended <- errors.Join(all...)
	return all
}

// Each connection for appends is used by two appends that are rejected, and the ledgers of Red and Blue do not change.
func TestUseChangesNothing(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	engine, err := pgstore.Open(t.Context(), pgstore.Options{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	red, blue := id.NewTenant(), id.NewTenant()
	head := storage.Head{Root: id.Hash{7}}
	for _, organization := range []id.Tenant{red, blue} {
		if err := engine.Append([]storage.Batch{{Tenant: organization, Head: head}}).Wait()[0]; err != nil {
			t.Fatal(err)
		}
	}
	o := &warmOutcomes{Engine: engine, ended: map[int]chan error{}}
	const streams = 4
	for s := range streams + 1 {
		o.ended[s] = make(chan error, 2*streams)
	}
	pgstore.Warm(t.Context(), o)
	for s := range streams {
		const each = 2
		if n := len(o.ended[s]); n != each {
			t.Fatalf("stream %d: got %d appends, want %d", s, n, each)
		}
		for range each {
			if err := <-o.ended[s]; !errors.Is(err, storage.ErrConflict) {
				t.Errorf("stream %d: got %v, want %v", s, err, storage.ErrConflict)
			}
		}
	}
	var tenants []id.Tenant
	for organization, err := range engine.Tenants(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		tenants = append(tenants, organization)
		if got, err := engine.Head(t.Context(), organization); err != nil || got != head {
			t.Errorf("got %+v, %v, want %+v", got, err, head)
		}
	}
	if len(tenants) != 2 {
		t.Errorf("got %d ledgers, want those of Red and Blue", len(tenants))
	}
}
