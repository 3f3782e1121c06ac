package admission

import (
	"context"
	"errors"
	"net"
	"os"
	"time"
)

// acceptTime is how long what the kernel has accepted before a drain may take to
// be accepted here. It is only waited for while nothing comes.
const acceptTime = 20 * time.Millisecond

// Drain stops listening and ends each connection as soon as no request is on it. What
// has arrived by then, read or not, is answered, where http.Server.Shutdown would drop
// it. It returns when no connection is open, or with the error of ctx. Call it once,
// while the listener is served.
func (l *Listener) Drain(ctx context.Context) error {
	l.mu.Lock()
	l.draining = true
	l.closed.Broadcast()
	l.mu.Unlock()
	if d, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); !ok || d.SetDeadline(time.Now().Add(acceptTime)) != nil {
		_ = l.Close()
	}
	select {
	case <-l.accepted:
	case <-ctx.Done():
		return ctx.Err()
	}
	l.mu.Lock()
	for c := range l.open {
		if c.idle.Load() != 0 {
			c.leave()
		}
	}
	l.tellEmpty()
	l.mu.Unlock()
	select {
	case <-l.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close stops listening. Further calls do nothing.
func (l *Listener) Close() (err error) {
	l.close.Do(func() { err = l.Listener.Close() })
	return err
}

// last returns the error with which Accept ends.
func (l *Listener) last(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.draining || !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, net.ErrClosed) {
		return err
	}
	_ = l.Close()
	select {
	case <-l.accepted:
	default:
		close(l.accepted)
	}
	return net.ErrClosed
}

func (l *Listener) isDraining() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.draining
}

// tellEmpty ends a drain when there is nothing left of it. l.mu is held.
func (l *Listener) tellEmpty() {
	if !l.draining || len(l.open) > 0 {
		return
	}
	select {
	case <-l.empty:
	default:
		close(l.empty)
	}
}
