package listener

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// Times of a connection.
const (
	grace       = 500 * time.Millisecond // extension of a deadline that has passed
	lingerTime  = 2 * time.Second        // for reading an ending connection
	lingerBytes = 16 << 20               // maximum that is read from an ending connection
)

// conn is a connection of a Listener, between http.Server and the network. One goroutine
// reads and one writes at a time. Its other methods may be called concurrently.
type conn struct {
	net.Conn
	listener *Listener

	idle    atomic.Int64 // since when no request is in flight, in Unix nanoseconds; 0 during a request
	unused  atomic.Bool  // no byte has been received yet
	heading atomic.Bool  // headers of a request are arriving
	leaving atomic.Bool  // no further request is read
	closed  atomic.Bool
	strange atomic.Bool // the handshake precedes the first read (Listener.Strangers)

	headerTime    time.Duration // within which headers must arrive; if zero, no bound; set while unused
	reads, writes deadline
}

func newAcceptedConn(c net.Conn, l *Listener) *conn {
	accepted := &conn{
		Conn:     c,
		listener: l,
		reads:    deadline{set: c.SetReadDeadline, grace: grace},
		writes:   deadline{set: c.SetWriteDeadline, grace: grace},
	}
	_, accepted.writes.exact = c.(*tls.Conn)
	accepted.unused.Store(true)
	accepted.idle.Store(time.Now().UnixNano())
	return accepted
}

// Read implements net.Conn. It responds to headers that do not arrive in time, and to
// headers that were cut off because the connection was evicted.
func (c *conn) Read(p []byte) (int, error) {
	if c.strange.Load() {
		if err := c.shakeHands(); err != nil {
			return 0, err
		}
	}
	n, err := c.readByDeadline(p)
	switch {
	case n > 0 && c.idle.Load() != 0:
		c.beginRequest(n)
	case n == 0 && err != nil && c.heading.Swap(false):
		err = c.answerCutHeaders(err)
	}
	return n, err
}

// readByDeadline reads until the deadline, whether or not the bytes belong to a request.
func (c *conn) readByDeadline(p []byte) (n int, err error) {
	err = c.reads.beginCall()
	for again := err == nil; again; {
		n, err = c.Conn.Read(p)
		err, again = c.reads.endCall(n, err)
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (done int, err error) {
	err = c.writes.beginCall()
	for again := err == nil; again; {
		var n int
		n, err = c.Conn.Write(p[done:])
		done += n
		err, again = c.writes.endCall(done, err)
	}
	return done, err
}

// beginRequest records that n bytes of a request have arrived, and starts the time for its
// headers. http.Server itself starts that time with the fourth byte of every request except
// the first.
func (c *conn) beginRequest(n int) {
	c.idle.Store(0)
	c.heading.Store(true)
	if (c.unused.Swap(false) || n < 4) && c.headerTime > 0 {
		_ = c.reads.setDeadline(time.Now().Add(c.headerTime))
	}
}

// answerCutHeaders responds to headers that ended with err before they were complete.
func (c *conn) answerCutHeaders(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.writeLast("408 Request Timeout", "", `{"error":"The headers took too long to arrive"}`)
	case errors.Is(err, io.EOF) && c.leaving.Load():
		c.writeLast("503 Service Unavailable", "Retry-After: 1\r\n",
			`{"error":"Too many connections","code":"overloaded"}`)
		return os.ErrDeadlineExceeded // http.Server does not respond to this error
	}
	return err
}

// writeLast writes the last response of a connection, within a short time.
func (c *conn) writeLast(status, header, body string) {
	_ = c.writes.setFinalDeadline(time.Now().Add(grace))
	const answer = "HTTP/1.1 %s\r\nContent-Type: application/json\r\n%sConnection: close\r\n" +
		"Content-Length: %d\r\n\r\n%s"
	_, _ = fmt.Fprintf(c, answer, status, header, len(body), body)
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn. The first deadline is for the headers of the first
// request, and here its time starts with their first byte. Clients keep unused connections, and would lose a
// request if a connection were closed at the moment of its first use.
func (c *conn) SetReadDeadline(t time.Time) error {
	if !c.unused.Load() || t.IsZero() {
		return c.reads.setDeadline(t)
	}
	c.headerTime = max(1, time.Until(t))
	if c.listener.Unused == 0 {
		return c.reads.setDeadline(time.Time{})
	}
	return c.reads.setDeadline(time.Now().Add(c.listener.Unused))
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.writes.setDeadline(t) }

// CloseWrite closes the writing side, and discards received bytes until the peer has
// closed its side. The kernel resets a connection that is closed with unread bytes, and the client would lose
// the last response.
func (c *conn) CloseWrite() error {
	below, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	err := below.CloseWrite()
	c.idle.Store(time.Now().UnixNano()) // it may be evicted
	if c.listener.isDraining() {
		c.endReading()
	}
	_ = c.reads.setDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, readerFunc(c.readByDeadline), lingerBytes)
	return err
}

type readerFunc func([]byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// endReading ends an idle connection. A request that has arrived, read or not, still gets
// its response, because only the receiving side is closed.
func (c *conn) endReading() {
	c.leaving.Store(true)
	below, ok := c.Conn.(interface{ CloseRead() error })
	if !ok || below.CloseRead() != nil {
		_ = c.Conn.Close()
	}
}

// Close closes the connection and removes it from the listener.
func (c *conn) Close() error {
	err := c.Conn.Close()
	if c.closed.CompareAndSwap(false, true) {
		c.listener.forgetConn(c)
	}
	return err
}
