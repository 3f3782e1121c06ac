package listener

import (
	"context"
	"sync"
	"time"
)

// patience is how long Done may take to notice that the client has disconnected. Most waits end earlier, and watching
// the connection takes six allocations and two locks.
const patience = 50 * time.Millisecond

// Context is the context of a request, with a deadline that can be moved. It uses a timer
// only after a call of Done. Err notices at once that the client has disconnected, Done at most
// patience later. Its methods may be called concurrently.
//
// The deadlines of package context can be neither moved nor paused, and one for each request takes about 3 % of the processor
// time of a log's head.
type Context struct {
	context.Context // of the connection: ends when the client disconnects

	mu         sync.Mutex
	at         time.Time     // the deadline
	paused     time.Time     // start of the pause; zero if not paused
	err        error         // why the context ended; nil before
	done       chan struct{} // nil until Done is called
	timer      *time.Timer   // nil until Done is called
	stopParent func() bool   // stops watching the parent; nil until patience has passed
	callbacks  map[*func()]struct{}
}

// WithContext returns a context that ends at a time, or with parent. The caller must call
// Release after the response.
func WithContext(parent context.Context, at time.Time) *Context {
	return &Context{Context: parent, at: at}
}

type contextKey struct{}

// ContextOf returns the Context that ctx is or was derived from, or nil.
func ContextOf(ctx context.Context) *Context {
	c, _ := ctx.Value(contextKey{}).(*Context)
	return c
}

// DetachedContext returns a context that ends at the deadline of ctx, if there is one, but not
// when the client disconnects. Use it for work whose outcome matters without the client.
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

// Pause stops the clock until Resume, for time that the client takes. Only one
// caller at a time may pause a context.
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

// Extend moves the deadline to at least d from now. It has no effect on a context that has ended.
func (c *Context) Extend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := time.Now().Add(d); at.After(c.at) {
		c.at = at
	}
	c.resetTimer()
}

// resetTimer resets the timer, if there is one, after the deadline was moved.
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

// checkEnd ends the context if its deadline has passed. Otherwise it starts to watch the parent, once,
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

// AfterFunc allows package context to derive contexts from this one without a goroutine.
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
