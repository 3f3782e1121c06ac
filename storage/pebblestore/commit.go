package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// commit is a write that is being applied, or was applied and may still be syncing.
type commit struct {
	engine  *Engine
	batch   *pebble.Batch
	records []string // keys of the stored records that it writes

	applied sync.WaitGroup // done once c is applied; until then, readers may find c but must not touch batch
	once    sync.Once
	err     error

	watch sync.Once     // starts the goroutine that closes ended
	ended chan struct{} // closed when waitDurable returns, for readers whose context may end earlier
}

// waitDurable returns nil when c, and so every earlier write, is durable, and otherwise an error that is
// storage.ErrBroken. It may be called concurrently. A nil commit is durable.
func (c *commit) waitDurable() error {
	if c == nil {
		return nil
	}
	c.applied.Wait()
	c.once.Do(c.syncCommit)
	return c.err
}

// waitDurableOr is like waitDurable but returns the error of ctx if it ends first. One goroutine waits for all callers
// that may give up.
func (c *commit) waitDurableOr(ctx context.Context) error {
	if c == nil || ctx.Done() == nil {
		return c.waitDurable()
	}
	c.watch.Do(func() {
		c.ended = make(chan struct{})
		go func() {
			_ = c.waitDurable()
			close(c.ended)
		}()
	})
	select {
	case <-c.ended:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *commit) syncCommit() {
	if err := c.batch.SyncWait(); err != nil {
		c.err = c.engine.breakEngine(fmt.Errorf("sync: %w", err))
		return // keep the records unsynced, as in abandonCommit
	}
	c.engine.unsynced.removeCommit(c)
	_ = c.batch.Close() // fails only if it is already closed
	c.batch = nil
}

// abandonCommit ends c without success. Its writes may be visible, so its records stay unsynced: no reader may return
// them.
func (c *commit) abandonCommit(cause error) error {
	c.once.Do(func() { c.err = c.engine.breakEngine(cause) })
	return c.err
}

// applyBatch makes b visible and starts to sync it. The caller must hold the write lock. records are the keys of the
// stored records in b. The checks and construction of the next write overlap the sync of this one, which raises
// throughput by half. Pebble marks ApplyNoSyncWait as experimental.
func (e *Engine) applyBatch(b *pebble.Batch, records []string) (c *commit, err error) {
	if err := e.brokenCause(); err != nil {
		return nil, err
	}
	c = &commit{engine: e, batch: b, records: records}
	c.applied.Add(1)
	defer c.applied.Done()
	e.unsynced.addCommit(c)
	defer func() {
		if p := recover(); p != nil {
			c, err = nil, c.abandonCommit(fmt.Errorf("commit: %v", p))
		}
	}()
	if err := e.db.ApplyNoSyncWait(b, pebble.Sync); err != nil {
		return nil, c.abandonCommit(fmt.Errorf("commit: %w", err))
	}
	e.write.last = c
	e.countWrites(records)
	return c, nil
}

// unsynced tracks the stored records that were written by commits that are not durable yet. A commit is added before it
// is visible and removed after it is durable, so a reader must read first and then call a settle method.
type unsynced struct {
	count   atomic.Int64 // commits in records
	mu      sync.Mutex
	records map[string]*commit // the latest unsynced commit of each key
}

func (u *unsynced) addCommit(c *commit) {
	if len(c.records) == 0 {
		return
	}
	u.count.Add(1)
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, key := range c.records {
		u.records[key] = c
	}
}

func (u *unsynced) removeCommit(c *commit) {
	if len(c.records) == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, key := range c.records {
		if u.records[key] == c {
			delete(u.records, key)
		}
	}
	u.count.Add(-1)
}

// settleRecord returns when everything that a read of key can have seen is durable, or with the error of ctx.
func (u *unsynced) settleRecord(ctx context.Context, key []byte) error {
	if u.count.Load() == 0 {
		return nil
	}
	u.mu.Lock()
	c := u.records[string(key)]
	u.mu.Unlock()
	return c.waitDurableOr(ctx)
}

// settleRange is like settleRecord, for the keys [lower, upper).
func (u *unsynced) settleRange(ctx context.Context, lower, upper []byte) error {
	if u.count.Load() == 0 {
		return nil
	}
	var errs []error
	for _, c := range u.recordsBetween(string(lower), string(upper)) {
		errs = append(errs, c.waitDurableOr(ctx))
	}
	return errors.Join(errs...)
}

func (u *unsynced) recordsBetween(lower, upper string) (found []*commit) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for key, c := range u.records {
		if lower <= key && key < upper {
			found = append(found, c)
		}
	}
	return found
}
