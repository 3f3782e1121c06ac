package listener

import (
	"context"
	"errors"
	"net"
	"os"
	"time"
)

// acceptTime is how long Accept continues after a drain has begun, for connections that
// the kernel accepted before.
const acceptTime = 20 * time.Millisecond

// Drain stops listening, and ends each connection as soon as no request is in flight on
// it and none has arrived for the time Next. A request that has arrived by then, read or not, gets a response;
// http.Server.Shutdown would drop it. Drain returns when no connection is open, or with the
// error of ctx. It must be called at most once, while the listener is served.
func (l *Listener) Drain(ctx context.Context) error {
	l.beginDraining()
	below, ok := l.Listener.(interface{ SetDeadline(time.Time) error })
	if !ok || below.SetDeadline(time.Now().Add(acceptTime)) != nil {
		_ = l.Close()
	}
	select {
	case <-l.accepted:
	case <-ctx.Done():
		return ctx.Err()
	}
	l.endIdleConns()
	select {
	case <-l.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// endAfterNext ends an idle connection once it has been idle for the time Next.
func (c *conn) endAfterNext() {
	since := c.idle.Load()
	if since == 0 {
		return
	}
	end := func() {
		if c.idle.Load() == since {
			c.endReading()
		}
	}
	if wait := c.listener.Next - time.Since(time.Unix(0, since)); wait > 0 {
		time.AfterFunc(wait, end)
		return
	}
	end()
}

func (l *Listener) beginDraining() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
	l.released.Broadcast()
}

func (l *Listener) endIdleConns() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		c.endAfterNext()
	}
	l.hurryStrangers()
	l.closeWhenEmpty()
}

// Close stops listening. Further calls have no effect.
func (l *Listener) Close() (err error) {
	l.closeOnce.Do(func() { err = l.Listener.Close() })
	return err
}

// endAccepting returns the error with which Accept ends.
func (l *Listener) endAccepting(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.draining || !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, net.ErrClosed) {
		return err
	}
	_ = l.Close()
	closeOnce(l.accepted)
	return net.ErrClosed
}

func (l *Listener) isDraining() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.draining
}

// closeWhenEmpty ends a drain after the last connection. The caller must hold l.mu.
func (l *Listener) closeWhenEmpty() {
	if l.draining && len(l.open)+len(l.strange) == 0 {
		closeOnce(l.empty)
	}
}

// closeOnce closes a channel unless it is closed already. It must not be called concurrently.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}
