package storagetest

import (
	"context"
	"sync/atomic"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Counter counts what is asked of a store of records. It is safe for concurrent use as far as the store is.
type Counter struct {
	storage.RecordStore
	reads, writes, changes atomic.Int64
}

// Work is the work of a call for its store.
type Work struct{ Reads, Writes, Changes int64 }

// Work returns the work of do.
func (c *Counter) Work(do func()) Work {
	c.reads.Store(0)
	c.writes.Store(0)
	c.changes.Store(0)
	do()
	return Work{c.reads.Load(), c.writes.Load(), c.changes.Load()}
}

// Get implements storage.RecordStore.
func (c *Counter) Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error) {
	c.reads.Add(1)
	return c.RecordStore.Get(ctx, t, kind, key)
}

// Scan implements storage.RecordStore.
func (c *Counter) Scan(ctx context.Context, t id.Tenant, kind storage.Kind, begin, end string, limit int) ([]storage.Record, error) {
	c.reads.Add(1)
	return c.RecordStore.Scan(ctx, t, kind, begin, end, limit)
}

// Write implements storage.RecordStore.
func (c *Counter) Write(ctx context.Context, t id.Tenant, changes []storage.Change) error {
	c.writes.Add(1)
	c.changes.Add(int64(len(changes)))
	return c.RecordStore.Write(ctx, t, changes)
}
