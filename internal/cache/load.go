package cache

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/agentledger/agentledger/fault"
)

// load is a read under way.
type load[V any] struct {
	began   time.Time     // by the cache's clock
	started time.Time     // by the machine's, for patience
	done    chan struct{} // closed when entry or err is set
	entry   *entry[V]
	err     error
}

// renew returns a value that was read late enough for who asked at a time.
func (c *Cache[K, V]) renew(ctx context.Context, key K, asked time.Time, read func(context.Context) (V, error)) (V, error) {
	for {
		e, l := c.join(ctx, key, asked, read)
		if l == nil {
			return e.value, nil
		}
		old := c.usable(key, e, asked)
		err := c.wait(ctx, l, old)
		switch {
		case err == nil && (c.fresh(l.entry, asked) || !l.began.Before(asked)):
			return l.entry.value, nil
		case err == nil:
			continue // read too long ago: it began before this call
		case old && Unanswered(err) && c.holds(key, e):
			c.stale.Add(1)
			return e.value, nil
		case old && err == errImpatient:
			continue // e was dropped meanwhile
		}
		var none V
		return none, err
	}
}

// join returns a fresh entry, or the read under way of a key, which it begins if
// there is none, with the entry of before.
func (c *Cache[K, V]) join(ctx context.Context, key K, asked time.Time, read func(context.Context) (V, error)) (*entry[V], *load[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	if c.fresh(e, asked) {
		return e, nil
	}
	l := c.loads[key]
	if l == nil {
		l = &load[V]{began: asked, started: time.Now(), done: make(chan struct{}), err: errUnfinished}
		c.loads[key] = l
		go c.run(context.WithoutCancel(ctx), key, l, read)
	}
	return e, l
}

// errImpatient: there is an older value, and the read takes too long.
var errImpatient = fmt.Errorf("the store has not answered yet: %w", context.DeadlineExceeded)

// wait returns the error of a read, that of ctx, or errImpatient if old says that
// there is something better to do than to wait.
func (c *Cache[K, V]) wait(ctx context.Context, l *load[V], old bool) error {
	var patience <-chan time.Time
	if old {
		t := time.NewTimer(c.options.Patience - time.Since(l.started))
		defer t.Stop()
		patience = t.C
	}
	select {
	case <-l.done:
		return l.err
	case <-patience:
		return errImpatient
	case <-ctx.Done():
		return ctx.Err()
	}
}

// usable reports whether an entry may be shown while the store does not answer.
func (c *Cache[K, V]) usable(key K, e *entry[V], asked time.Time) bool {
	if e == nil || c.options.Stale == 0 || asked.Sub(e.began) >= c.options.MaxAge+c.options.Stale {
		return false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	until, dropped := c.dropped[key]
	return !dropped || asked.After(until)
}

// holds reports whether an entry is still that of its key, or was only expired.
func (c *Cache[K, V]) holds(key K, e *entry[V]) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	now := c.entries[key]
	return now != nil && now.began.Equal(e.began)
}

// run reads a value, keeps it and releases who waits for it.
func (c *Cache[K, V]) run(ctx context.Context, key K, l *load[V], read func(context.Context) (V, error)) {
	ctx, cancel := context.WithTimeout(ctx, c.options.LoadTime)
	defer cancel()
	var value V
	defer func() {
		if p := recover(); p != nil {
			l.err = fmt.Errorf("read: panic: %v\n%s", p, debug.Stack())
		}
		c.end(key, l, value)
	}()
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		l.err = &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: "The store does not answer", Err: ctx.Err()}
		return
	}
	value, l.err = read(ctx)
}

// end keeps what was read, unless it was dropped meanwhile. An answer that is an
// error takes the value of before away: a key that another process has revoked
// must not come back when the store falls silent.
func (c *Cache[K, V]) end(key K, l *load[V], value V) {
	l.entry = &entry[V]{value: value, began: l.began, weight: weightOf(value)}
	c.mu.Lock()
	if c.loads[key] == l {
		delete(c.loads, key)
		switch {
		case l.err == nil:
			c.keep(key, l.entry)
		case !Unanswered(l.err):
			c.forget(key)
		}
	}
	c.mu.Unlock()
	close(l.done)
}
