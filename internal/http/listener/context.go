package listener

import (
	"context"
	"sync"
	"time"
)

// patience is for how long a wait for the end of a Context does not notice that the client
// goes. Most waits are over before, and noticing it costs six objects and two locks.
const patience = 50 * time.Millisecond

// Context is the context of a request with a deadline that can be moved. It costs a timer
// only while its end is waited for. Err notices at once that the client has gone, Done at most
// patience later. Its methods may be called concurrently.
type Context struct {
	context.Context // of the connection: ends when the client goes

	mu         sync.Mutex
	at         time.Time     // the deadline
	paused     time.Time     // begin of the pause, zero without one
	err        error         // why the context ended; nil before
	done       chan struct{} // nil until Done is called
	timer      *time.Timer   // nil as long as done is
	stopParent func() bool   // ends the wait for the parent's end; nil before patience is over
	callbacks  map[*func()]struct{}
}

// WithContext returns a context that ends at a time, or with parent. The caller MUST call
// Release when the request is answered.
func WithContext(parent context.Context, at time.Time) *Context {
	return &Context{Context: parent, at: at}
}

type contextKey struct{}

// ContextOf returns the Context that ctx is or was derived from, nil without one.
func ContextOf(ctx context.Context) *Context {
	c, _ := ctx.Value(contextKey{}).(*Context)
	return c
}

// DetachedContext returns a context that ends at the deadline of ctx, if there is one, but not
// when the client goes. Use it for work whose outcome matters without the client.
func DetachedContext(ctx context.Context) (context.Context, context.CancelFunc) {
	at, bounded := ctx.Deadline()
	if !bounded {
		return context.WithCancel(context.WithoutCancel(ctx))
	}
	return context.WithDeadline(context.WithoutCancel(ctx), at)
}

// Value implements context.Context.
func (c *Context) Value(key any) any {
	if key == (contextKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Deadline implements context.Context.
func (c *Context) Deadline() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused.IsZero() {
		return c.at, true
	}
	return c.at.Add(time.Since(c.paused)), true
}

// Pause stops the time until Resume, because the client's time is not the request's. One
// caller at a time pauses a context.
func (c *Context) Pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = time.Now()
}

// Resume ends Pause.
func (c *Context) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(time.Since(c.paused))
	c.paused = time.Time{}
	c.resetTimer()
}

// Extend moves the deadline to at least d from now. A context that has ended stays so.
func (c *Context) Extend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := time.Now().Add(d); at.After(c.at) {
		c.at = at
	}
	c.resetTimer()
}

// resetTimer sets the timer anew, if there is one, once the deadline was moved.
func (c *Context) resetTimer() {
	if c.timer == nil || c.err != nil {
		return
	}
	d := time.Until(c.at)
	if c.stopParent == nil {
		d = min(d, patience)
	}
	c.timer.Reset(d)
}

// Done implements context.Context.
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done != nil {
		return c.done
	}
	c.done = make(chan struct{})
	if c.err != nil {
		close(c.done)
		return c.done
	}
	c.timer = time.AfterFunc(min(time.Until(c.at), patience), c.checkEnd)
	return c.done
}

func (c *Context) hasPassed() bool { return c.paused.IsZero() && !time.Now().Before(c.at) }

// checkEnd ends the context at its deadline. Before, it has the context wait for its parent too, once,
// and sets the timer for the deadline.
func (c *Context) checkEnd() {
	c.mu.Lock()
	passed := c.hasPassed()
	if !passed && c.err == nil {
		if c.stopParent == nil {
			c.stopParent = context.AfterFunc(c.Context, func() { c.endWithError(c.Context.Err()) })
		}
		if c.paused.IsZero() { // otherwise Resume sets the timer
			c.resetTimer()
		}
	}
	c.mu.Unlock()
	if passed {
		c.endWithError(context.DeadlineExceeded)
	}
}

// Err implements context.Context.
func (c *Context) Err() error {
	c.mu.Lock()
	err, passed := c.err, c.hasPassed()
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if err = c.Context.Err(); err == nil && passed {
		err = context.DeadlineExceeded
	}
	if err != nil {
		c.endWithError(err)
	}
	return err
}

// AfterFunc lets package context derive contexts from this one without a goroutine.
func (c *Context) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	if c.callbacks == nil {
		c.callbacks = make(map[*func()]struct{})
	}
	c.callbacks[&f] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, waits := c.callbacks[&f]
		delete(c.callbacks, &f)
		return waits
	}
}

// Release ends the context and stops its timer.
func (c *Context) Release() { c.endWithError(context.Canceled) }

func (c *Context) endWithError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	if c.done != nil {
		close(c.done)
		c.timer.Stop()
		if c.stopParent != nil {
			c.stopParent()
		}
	}
	for f := range c.callbacks {
		go (*f)()
	}
	c.callbacks = nil
}
