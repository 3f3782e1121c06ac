package cache

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/agentledger/agentledger/fault"
)

// load is a read in flight.
type load[V any] struct {
	query   request       // of the first caller
	started time.Time     // on the machine's clock, for Patience
	done    chan struct{} // closed when loaded or err is set
	loaded  *loaded[V]
	err     error
}

// readFresh returns a value that is fresh for the request, or a stale one if the store does not answer.
func (c *Loading[K, V]) readFresh(
	ctx context.Context, key K, query request, read func(context.Context) (V, error),
) (V, error) {
	for {
		known, l := c.joinLoad(ctx, key, query, read)
		if l == nil {
			return known.value, nil
		}
		old := c.mayShowStale(key, known, query)
		err := c.awaitLoad(ctx, l, old)
		switch {
		case err == nil && (c.isFresh(l.loaded, query) || !l.query.at.Before(query.at)):
			return l.loaded.value, nil
		case err == nil:
			continue // the read started before this call and is too old for it
		case old && isUnanswered(err) && c.stillHolds(key, known):
			c.stale.Add(1)
			return known.value, nil
		case old && err == errImpatient:
			continue // known was dropped in the meantime
		}
		var none V
		return none, err
	}
}

// joinLoad returns the fresh value of a key, or else the cached value and the read in flight. It starts a read if there
// is none for the version.
func (c *Loading[K, V]) joinLoad(
	ctx context.Context, key K, query request, read func(context.Context) (V, error),
) (*loaded[V], *load[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, _ := c.values.Get(key)
	if c.isFresh(known, query) {
		return known, nil
	}
	l := c.loads[key]
	if l == nil || l.query.version < query.version { // an older version may lack the key
		l = &load[V]{query: query, started: time.Now(), done: make(chan struct{}), err: errUnfinished}
		c.loads[key] = l
		go c.runLoad(context.WithoutCancel(ctx), key, l, read)
	}
	return known, l
}

// errImpatient means that there is a stale value and that the read takes longer than Patience.
var errImpatient = fmt.Errorf("the store has not answered yet: %w", context.DeadlineExceeded)

// awaitLoad waits for a read and returns its error, or the error of ctx. If old is true, it waits only for Patience and
// then returns errImpatient.
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

// mayShowStale reports whether a cached value may be returned while the store does not answer.
func (c *Loading[K, V]) mayShowStale(key K, known *loaded[V], query request) bool {
	if known == nil || c.options.Stale == 0 || known.version < query.version ||
		query.at.Sub(known.began) >= c.options.MaxAge+c.options.Stale {
		return false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	until, dropped := c.dropped[key]
	return !dropped || query.at.After(until)
}

// stillHolds reports whether a value is still cached for its key. An expired value is.
func (c *Loading[K, V]) stillHolds(key K, known *loaded[V]) bool {
	now, found := c.values.Get(key)
	return found && now.began.Equal(known.began)
}

// runLoad reads and caches a value, and releases all callers that wait for it.
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

// finishLoad caches the value that was read, unless it was dropped in the meantime. If the read returned an error other
// than that the store did not answer, it removes the cached value: a key that another process has revoked must not be
// accepted again when the store becomes unavailable.
func (c *Loading[K, V]) finishLoad(key K, l *load[V], value V) {
	l.loaded = &loaded[V]{value: value, began: l.query.at, version: l.query.version, writes: l.query.writes}
	c.mu.Lock()
	if c.loads[key] == l {
		delete(c.loads, key)
		switch {
		case l.err == nil:
			c.values.Put(key, l.loaded)
		case !isUnanswered(l.err):
			c.values.Delete(key)
		}
	}
	c.mu.Unlock()
	close(l.done)
}
