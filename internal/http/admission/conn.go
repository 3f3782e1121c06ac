package admission

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// conn is a connection of a Listener. It stands between http.Server and the network
// and sees to it that no request loses its answer unless its sender is to blame.
type conn struct {
	net.Conn
	listener *Listener

	idle    atomic.Int64 // since when, in Unix nanoseconds; 0 while it is not
	unused  atomic.Bool  // nothing has ever come
	heading atomic.Bool  // headers of a request are arriving
	leaving atomic.Bool  // only what has arrived is still wanted
	closed  atomic.Bool

	headers       time.Duration // how long headers may take, 0 for no bound; set while it is unused
	reads, writes deadline
}

func newConn(c net.Conn, l *Listener) *conn {
	mine := &conn{Conn: c, listener: l, reads: deadline{set: c.SetReadDeadline}, writes: deadline{set: c.SetWriteDeadline}}
	mine.unused.Store(true)
	mine.idle.Store(time.Now().UnixNano())
	return mine
}

// Read reads. Headers that don't arrive in time, or not before the connection had to
// make room, are answered.
func (c *conn) Read(p []byte) (int, error) {
	n, err := unheeded{c}.Read(p)
	switch {
	case n > 0 && c.idle.Load() != 0:
		c.begin(n)
	case n == 0 && err != nil && c.heading.Swap(false):
		err = c.explain(err)
	}
	return n, err
}

// unheeded reads what is of no request, or not known to be.
type unheeded struct{ *conn }

// Read implements io.Reader.
func (u unheeded) Read(p []byte) (int, error) {
	n, err := u.Conn.Read(p)
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && u.reads.move() {
		n, err = u.Conn.Read(p)
	}
	return n, err
}

// begin notes that n bytes of a request have come. The time for its headers begins,
// which http.Server sees to after the fourth byte of every request but the first.
func (c *conn) begin(n int) {
	c.idle.Store(0)
	c.heading.Store(true)
	if (c.unused.Swap(false) || n < 4) && c.headers > 0 {
		_ = c.reads.put(time.Now().Add(c.headers))
	}
}

// explain answers to headers that are not whole because of err.
func (c *conn) explain(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.say("408 Request Timeout", "", `{"error":"The headers took too long to arrive"}`)
	case errors.Is(err, io.EOF) && c.leaving.Load():
		c.say("503 Service Unavailable", "Retry-After: 1\r\n", `{"error":"Too many connections","code":"overloaded"}`)
		return os.ErrDeadlineExceeded // to which http.Server adds nothing
	}
	return err
}

// say writes the last answer of a connection, as far as that goes without waiting.
func (c *conn) say(status, header, body string) {
	_ = c.Conn.SetWriteDeadline(time.Now().Add(patience))
	_, _ = fmt.Fprintf(c.Conn, "HTTP/1.1 %s\r\nContent-Type: application/json\r\n%sConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		status, header, len(body), body)
}

// Write writes.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && c.writes.move() {
		n, err = c.Conn.Write(p)
	}
	return n, err
}

// SetReadDeadline sets the deadline of reads. The first one is for the headers of the
// first request, and begins with them here: clients keep connections in store, and one
// that is closed at the moment of its first use costs them a request.
func (c *conn) SetReadDeadline(t time.Time) error {
	if !c.unused.Load() || t.IsZero() {
		return c.reads.put(t)
	}
	c.headers = max(1, time.Until(t))
	if c.listener.Unused == 0 {
		return c.reads.put(time.Time{})
	}
	return c.reads.put(time.Now().Add(c.listener.Unused))
}

// SetWriteDeadline sets the deadline of writes.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.writes.put(t) }

// CloseWrite tells the other end that nothing more will come, and reads away what that
// still sends until it has noticed. A connection that is closed while something
// unread lies in it takes its last answer back.
func (c *conn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return nil
	}
	err := half.CloseWrite()
	c.idle.Store(time.Now().UnixNano()) // it may be evicted
	if c.listener.isDraining() {
		c.leave()
	}
	_ = c.reads.put(time.Now().Add(linger))
	_, _ = io.CopyN(io.Discard, unheeded{c}, lingerBytes)
	return err
}

// leave ends an idle connection. A request that has arrived already, read or not, is
// still answered: what ends is the side on which further ones would come.
func (c *conn) leave() {
	c.leaving.Store(true)
	half, ok := c.Conn.(interface{ CloseRead() error })
	if !ok || half.CloseRead() != nil {
		_ = c.Conn.Close()
	}
}

// Close closes the connection and gives its room back, once.
func (c *conn) Close() error {
	err := c.Conn.Close()
	if c.closed.CompareAndSwap(false, true) {
		c.listener.forget(c)
	}
	return err
}
