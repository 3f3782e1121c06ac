package listener

import (
	"context"
	"sync"
	"time"
)

// Context is the context of a request that has a deadline. It costs a timer only when
// somebody waits for its end, and its deadline can be moved. Its methods may be called
// concurrently.
type Context struct {
	context.Context // of the connection: ends when the client goes

	mu     sync.Mutex
	at     time.Time
	paused time.Time     // since when no time passes; zero: it does
	err    error         // why it ended; nil while it has not
	done   chan struct{} // nil until somebody waits
	timer  *time.Timer   // nil as long as done is
	leave  func() bool   // stops waiting for the parent's end
	after  map[*func()]struct{}
}

// WithContext returns a context that ends at a time, or with parent. Whoever made it
// calls Release when the request is answered.
func WithContext(parent context.Context, at time.Time) *Context {
	return &Context{Context: parent, at: at}
}

type contextKey struct{}

// Of returns the Context that ctx is or was made from, nil when there is none.
func Of(ctx context.Context) *Context {
	c, _ := ctx.Value(contextKey{}).(*Context)
	return c
}

// Detached returns a context that does not end when the client goes, but at the
// deadline of ctx, if that has one: for work whose outcome is worth knowing.
func Detached(ctx context.Context) (context.Context, context.CancelFunc) {
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

// Pause lets no time pass until Resume: for time that the client takes. One caller at
// a time pauses a context.
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
	if c.timer != nil && c.err == nil {
		c.timer.Reset(time.Until(c.at))
	}
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
	c.timer = time.AfterFunc(time.Until(c.at), c.pass)
	c.leave = context.AfterFunc(c.Context, func() { c.end(c.Context.Err()) })
	return c.done
}

func (c *Context) passed() bool { return c.paused.IsZero() && !time.Now().Before(c.at) }

// pass ends the context, unless its deadline was moved.
func (c *Context) pass() {
	c.mu.Lock()
	passed := c.passed()
	c.mu.Unlock()
	if passed { // else Resume sets the timer
		c.end(context.DeadlineExceeded)
	}
}

// Err implements context.Context.
func (c *Context) Err() error {
	c.mu.Lock()
	err, passed := c.err, c.passed()
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if err = c.Context.Err(); err == nil && passed {
		err = context.DeadlineExceeded
	}
	if err != nil {
		c.end(err)
	}
	return err
}

// AfterFunc serves package context: a context made from this one needs no goroutine.
func (c *Context) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	if c.after == nil {
		c.after = make(map[*func()]struct{})
	}
	c.after[&f] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, waits := c.after[&f]
		delete(c.after, &f)
		return waits
	}
}

// Release ends the context and gives up what it holds.
func (c *Context) Release() { c.end(context.Canceled) }

func (c *Context) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	if c.done != nil {
		close(c.done)
		c.timer.Stop()
		c.leave()
	}
	for f := range c.after {
		go (*f)()
	}
	c.after = nil
}
