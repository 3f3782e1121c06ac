package cache

import "time"

// evictionLook is how many values are looked at to find an old one.
const evictionLook = 16

// keep puts an entry in place of that of before, or of an old one among a few, or
// else of any one; the caller holds mu.
func (c *Cache[K, V]) keep(key K, e *entry[V]) {
	c.forget(key)
	if c.options.Bytes > 0 && e.weight > c.options.Bytes {
		return
	}
	if c.full(e) {
		c.makeRoom(e)
	}
	c.entries[key] = e
	c.bytes += e.weight
}

// forget takes an entry away, if there is one; the caller holds mu.
func (c *Cache[K, V]) forget(key K) {
	if e := c.entries[key]; e != nil {
		c.bytes -= e.weight
		delete(c.entries, key)
	}
}

// full reports whether there is no room for one more entry.
func (c *Cache[K, V]) full(more *entry[V]) bool {
	return len(c.entries) >= c.options.Limit || c.options.Bytes > 0 && c.bytes+more.weight > c.options.Bytes
}

func (c *Cache[K, V]) makeRoom(more *entry[V]) {
	c.forgetOld(more.began)
	for k := range c.entries {
		if !c.full(more) {
			return
		}
		c.forget(k)
	}
}

// forgetOld takes those away, of a few, that are too old to be shown.
func (c *Cache[K, V]) forgetOld(now time.Time) {
	looked := 0
	for k, e := range c.entries {
		if looked++; looked > evictionLook {
			return
		}
		if !c.fresh(e, now) {
			c.forget(k)
		}
	}
}
