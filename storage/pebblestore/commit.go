package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// commit is one write that is being applied, or was and may still be syncing.
type commit struct {
	engine  *Engine
	batch   *pebble.Batch
	records []string // keys of the stored records it writes

	applied sync.WaitGroup // until then readers may know of c but not touch batch
	once    sync.Once
	err     error

	watch sync.Once     // begins to wait for ended
	ended chan struct{} // closed when waitDurable returns, for readers whose context may end earlier
}

// waitDurable returns when c, and so every write before it, is durable; else an error that is storage.ErrBroken. Any
// number of goroutines may call it. No commit is always durable.
func (c *commit) waitDurable() error {
	if c == nil {
		return nil
	}
	c.applied.Wait()
	c.once.Do(c.syncCommit)
	return c.err
}

// waitDurableOr is waitDurable, or the error of ctx if that ends before. One goroutine waits for
// all waiters that may leave.
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
		return // as in abandonCommit
	}
	c.engine.unsynced.removeCommit(c)
	_ = c.batch.Close() // fails only when closed twice
	c.batch = nil
}

// abandonCommit ends c without success. Its writes may be visible, so its records
// stay unsynced: no reader may be shown them.
func (c *commit) abandonCommit(cause error) error {
	c.once.Do(func() { c.err = c.engine.breakEngine(cause) })
	return c.err
}

// applyBatch makes b visible and begins to sync it. The caller holds the write lock. records are the keys of the
// stored records in b. The checks and the building of the next write overlap the sync of this one, which raises
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

// unsynced knows which stored records were written by commits that are not durable yet. A reader first reads, then
// asks: a commit is added before it is visible and removed after it is durable.
type unsynced struct {
	count   atomic.Int64 // commits with records that are on their way
	mu      sync.Mutex
	records map[string]*commit // the newest such commit by key
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

// settleRecord returns when nothing that a read of key can have seen is on its way
// any more, or with the error of ctx.
func (u *unsynced) settleRecord(ctx context.Context, key []byte) error {
	if u.count.Load() == 0 {
		return nil
	}
	u.mu.Lock()
	c := u.records[string(key)]
	u.mu.Unlock()
	return c.waitDurableOr(ctx)
}

// settleRange is settleRecord for the keys [lower, upper).
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
