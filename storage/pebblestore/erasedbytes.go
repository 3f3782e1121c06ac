package pebblestore

import (
	"errors"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// erasedCounter counts the appends with erasures. The zero value is that of a store without any. Count may be called
// concurrently with all other methods, which have one caller at a time.
type erasedCounter struct {
	n atomic.Uint64
}

// Load begins at 1 for a store without the key in which events may have been erased, at 0 for any other.
func (c *erasedCounter) Load(db *pebble.DB, key []byte, erased bool) error {
	if !erased {
		return nil
	}
	_, closer, err := db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		c.n.Store(1)
		return nil
	}
	if err != nil {
		return err
	}
	return closer.Close()
}

// Count returns 0 for a store whose files hold no erased bytes. Each append with erasures gives another number.
func (c *erasedCounter) Count() uint64 { return c.n.Load() }

// Add is part of an append with erasures, whose batch is b.
func (c *erasedCounter) Add(b *pebble.Batch, key []byte) {
	c.n.Add(1)
	_ = b.Delete(key, nil)
}

// Forget writes the key after a compaction of the whole store that began when the count was n, unless there was an
// erasure since. The key needs no sync: a store that lost the key is compacted once more.
func (c *erasedCounter) Forget(db *pebble.DB, key []byte, n uint64) error {
	if n == 0 || c.n.Load() != n {
		return nil
	}
	return db.Set(key, nil, pebble.NoSync)
}
