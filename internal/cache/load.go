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
	asked   request       // of the first caller
	started time.Time     // by the machine's clock, for patience
	done    chan struct{} // closed when loaded or err is set
	loaded  *loaded[V]
	err     error
}

// readFresh returns a value that was read late enough for a request.
func (c *Loading[K, V]) readFresh(
	ctx context.Context, key K, asked request, read func(context.Context) (V, error),
) (V, error) {
	for {
		known, l := c.joinLoad(ctx, key, asked, read)
		if l == nil {
			return known.value, nil
		}
		old := c.mayShowStale(key, known, asked)
		err := c.awaitLoad(ctx, l, old)
		switch {
		case err == nil && (c.isFresh(l.loaded, asked) || !l.asked.at.Before(asked.at)):
			return l.loaded.value, nil
		case err == nil:
			continue // read too long ago: it began before this call
		case old && IsUnanswered(err) && c.stillHolds(key, known):
			c.stale.Add(1)
			return known.value, nil
		case old && err == errImpatient:
			continue // known was dropped meanwhile
		}
		var none V
		return none, err
	}
}

// joinLoad returns a fresh value, or the read under way of a key, which it begins if
// there is none for the version, with the value of before.
func (c *Loading[K, V]) joinLoad(
	ctx context.Context, key K, asked request, read func(context.Context) (V, error),
) (*loaded[V], *load[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, _ := c.values.Get(key)
	if c.isFresh(known, asked) {
		return known, nil
	}
	l := c.loads[key]
	if l == nil || l.asked.version < asked.version { // an older version may lack the key
		l = &load[V]{asked: asked, started: time.Now(), done: make(chan struct{}), err: errUnfinished}
		c.loads[key] = l
		go c.runLoad(context.WithoutCancel(ctx), key, l, read)
	}
	return known, l
}

// errImpatient: there is an older value, and the read takes too long.
var errImpatient = fmt.Errorf("the store has not answered yet: %w", context.DeadlineExceeded)

// awaitLoad returns the error of a read, that of ctx, or errImpatient if old says that
// there is something better to do than to wait.
func (c *Loading[K, V]) awaitLoad(ctx context.Context, l *load[V], old bool) error {
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

// mayShowStale reports whether a value may be shown while the store does not answer.
func (c *Loading[K, V]) mayShowStale(key K, known *loaded[V], asked request) bool {
	if known == nil || c.options.Stale == 0 || known.version < asked.version ||
		asked.at.Sub(known.began) >= c.options.MaxAge+c.options.Stale {
		return false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	until, dropped := c.dropped[key]
	return !dropped || asked.at.After(until)
}

// stillHolds reports whether a value is still that of its key, or was only expired.
func (c *Loading[K, V]) stillHolds(key K, known *loaded[V]) bool {
	now, found := c.values.Get(key)
	return found && now.began.Equal(known.began)
}

// runLoad reads a value, keeps it and releases all callers that wait for it.
func (c *Loading[K, V]) runLoad(ctx context.Context, key K, l *load[V], read func(context.Context) (V, error)) {
	ctx, cancel := context.WithTimeout(ctx, c.options.LoadTime)
	defer cancel()
	var value V
	defer func() {
		if p := recover(); p != nil {
			l.err = fmt.Errorf("read: panic: %v\n%s", p, debug.Stack())
		}
		c.finishLoad(key, l, value)
	}()
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		l.err = &fault.Error{
			Kind:    fault.Unavailable,
			Code:    "unavailable",
			Message: "The store does not answer",
			Err:     ctx.Err(),
		}
		return
	}
	value, l.err = read(ctx)
}

// finishLoad keeps the value that was read, unless it was dropped meanwhile. An answer that is
// an error removes the value of before: a key that another process has revoked
// must not come back when the store falls silent.
func (c *Loading[K, V]) finishLoad(key K, l *load[V], value V) {
	l.loaded = &loaded[V]{value: value, began: l.asked.at, version: l.asked.version, writes: l.asked.writes}
	c.mu.Lock()
	if c.loads[key] == l {
		delete(c.loads, key)
		switch {
		case l.err == nil:
			c.values.Put(key, l.loaded)
		case !IsUnanswered(l.err):
			c.values.Delete(key)
		}
	}
	c.mu.Unlock()
	close(l.done)
}
