package pebblestore

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A compaction counts only if there was no erasure since it started, and a store that is not known to be clean is not
// clean.
func TestCounter(t *testing.T) {
	db, err := pebble.Open("db", &pebble.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	key := []byte("key")
	start := func(erased bool) *erasedCounter {
		t.Helper()
		c := new(erasedCounter)
		if err := c.Load(db, key, erased); err != nil {
			t.Fatal(err)
		}
		return c
	}
	want := func(when string, c *erasedCounter, n uint64) {
		t.Helper()
		if got := c.Count(); got != n {
			t.Errorf("%s: got %d, want %d", when, got, n)
		}
	}
	erase := func(c *erasedCounter) {
		t.Helper()
		b := db.NewBatch()
		c.Add(b, key)
		if err := b.Commit(pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	forget := func(c *erasedCounter, n uint64) {
		t.Helper()
		if err := c.Forget(db, key, n); err != nil {
			t.Fatal(err)
		}
	}
	want("never erased", start(false), 0)
	c := start(true)
	want("of an older program", c, 1)
	erase(c)
	want("erased", c, 2)
	forget(c, 1)
	want("erased while it was compacted", start(true), 1)
	forget(c, 2)
	want("the process of the compaction", c, 2)
	c = start(true)
	want("compacted", c, 0)
	forget(c, 0)
	erase(c)
	want("erased again", c, 1)
	want("erased again, after a start", start(true), 1)
}
