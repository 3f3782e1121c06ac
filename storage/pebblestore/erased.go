package pebblestore

import (
	"errors"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// erasedCounter counts the appends with erasures, and so tracks whether files of a store may still contain the bytes of
// erased events. The zero value is for a store without any. Count may be called concurrently with all other methods,
// which must be called one at a time.
//
// The store contains the key (familyErasures) only if no event was erased since a compaction of the whole store
// started. An erasure deletes the key in the same batch, so a crash leaves both or neither. A store without the key in
// which events may have been erased is assumed to contain their bytes.
type erasedCounter struct {
	n atomic.Uint64
}

// Load sets the count of a store that is being opened: 1 if it does not have the key and events may have been erased,
// otherwise 0.
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

// Count returns 0 if no file contains erased bytes. Each append with erasures increments it.
func (c *erasedCounter) Count() uint64 { return c.n.Load() }

// Add counts an append with erasures, and deletes the key in its batch b.
func (c *erasedCounter) Add(b *pebble.Batch, key []byte) {
	c.n.Add(1)
	_ = b.Delete(key, nil)
}

// Forget writes the key after a compaction of the whole store that started when the count was n, unless events have
// been erased since. The key needs no sync: if it is lost, the store is compacted once more.
func (c *erasedCounter) Forget(db *pebble.DB, key []byte, n uint64) error {
	if n == 0 || c.n.Load() != n {
		return nil
	}
	return db.Set(key, nil, pebble.NoSync)
}
