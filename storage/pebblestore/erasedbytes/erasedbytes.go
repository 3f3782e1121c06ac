// Package erasedbytes tells whether files of an embedded store may still hold the bytes of erased events.
//
// Invariants:
//
//   - The key of a store is there only if no event was erased since a compaction of the whole store began.
//   - An erasure and the deletion of the key are one batch, so that a crash leaves both or none.
//   - A store without the key, in which events may have been erased, is taken for one that holds such bytes.
package erasedbytes

import (
	"errors"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// Counter counts the appends with erasures. The zero value is that of a store without any. Count may be called
// concurrently with all other methods, which have one caller at a time.
type Counter struct {
	n atomic.Uint64
}

// Load begins at 1 for a store without the key in which events may have been erased, at 0 for any other.
func (c *Counter) Load(db *pebble.DB, key []byte, erased bool) error {
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
func (c *Counter) Count() uint64 { return c.n.Load() }

// Add is part of an append with erasures, whose batch is b.
func (c *Counter) Add(b *pebble.Batch, key []byte) {
	c.n.Add(1)
	_ = b.Delete(key, nil)
}

// Forget writes the key after a compaction of the whole store that began when the count was n, unless there was an
// erasure since. The key needs no sync: a store that lost the key is compacted once more.
func (c *Counter) Forget(db *pebble.DB, key []byte, n uint64) error {
	if n == 0 || c.n.Load() != n {
		return nil
	}
	return db.Set(key, nil, pebble.NoSync)
}
