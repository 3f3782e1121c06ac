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
	grace       = 500 * time.Millisecond // of a deadline that has passed
	lingerTime  = 2 * time.Second        // for which a connection at its end is read
	lingerBytes = 16 << 20               // read at its end at most
)

// conn is a connection of a Listener, between http.Server and the network. One goroutine
// reads and one writes at a time; its other methods may be called concurrently.
type conn struct {
	net.Conn
	listener *Listener

	idle    atomic.Int64 // since when no request is under way, in Unix nanoseconds; 0 with a request
	unused  atomic.Bool  // no byte has come yet
	heading atomic.Bool  // headers of a request are arriving
	leaving atomic.Bool  // no further request is read
	closed  atomic.Bool
	strange atomic.Bool // hands are to be shaken before the first read (Listener.Strangers)

	headerTime    time.Duration // in which headers have to arrive, 0 for no bound; set while unused
	reads, writes deadline
}

func newAcceptedConn(c net.Conn, l *Listener) *conn {
	accepted := &conn{
		Conn:     c,
		listener: l,
		reads:    deadline{set: c.SetReadDeadline, grace: grace},
		writes:   deadline{set: c.SetWriteDeadline, grace: grace},
	}
	accepted.unused.Store(true)
	accepted.idle.Store(time.Now().UnixNano())
	return accepted
}

// Read implements net.Conn. Headers that do not arrive in time get an answer, and so do
// headers that were cut off because the connection had to make room.
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
func (c *conn) readByDeadline(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && c.reads.extendOnce() {
		n, err = c.Conn.Read(p)
	}
	return n, err
}

// Write implements net.Conn. After a deadline has ended a write, a connection of crypto/tls fails each further write. So
// its deadline can only be extended before a write.
func (c *conn) Write(p []byte) (int, error) {
	_, secure := c.Conn.(*tls.Conn)
	if secure {
		c.writes.extendOnce()
	}
	n, err := c.Conn.Write(p)
	for n == 0 && !secure && errors.Is(err, os.ErrDeadlineExceeded) && c.writes.extendOnce() {
		n, err = c.Conn.Write(p)
	}
	return n, err
}

// beginRequest notes that n bytes of a request have come, and begins the time for its
// headers. http.Server begins that time itself with the fourth byte of every request but
// the first.
func (c *conn) beginRequest(n int) {
	c.idle.Store(0)
	c.heading.Store(true)
	if (c.unused.Swap(false) || n < 4) && c.headerTime > 0 {
		_ = c.reads.setDeadline(time.Now().Add(c.headerTime))
	}
}

// answerCutHeaders answers to headers that ended with err before they were whole.
func (c *conn) answerCutHeaders(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.writeLast("408 Request Timeout", "", `{"error":"The headers took too long to arrive"}`)
	case errors.Is(err, io.EOF) && c.leaving.Load():
		c.writeLast("503 Service Unavailable", "Retry-After: 1\r\n",
			`{"error":"Too many connections","code":"overloaded"}`)
		return os.ErrDeadlineExceeded // http.Server adds no answer to this error
	}
	return err
}

// writeLast writes the last answer of a connection, in a short time.
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
// request, and begins with their first byte here. Clients keep unused connections, and a
// connection that is closed at the moment of its first use costs them a request.
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

// CloseWrite ends the writing side, and reads away further bytes until the other end has
// noticed. A connection that is closed with unread bytes in it is reset, which would take
// the last answer back.
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
// its answer, because only the side is closed on which further requests would come.
func (c *conn) endReading() {
	c.leaving.Store(true)
	below, ok := c.Conn.(interface{ CloseRead() error })
	if !ok || below.CloseRead() != nil {
		_ = c.Conn.Close()
	}
}

// Close closes the connection and gives its room back, once.
func (c *conn) Close() error {
	err := c.Conn.Close()
	if c.closed.CompareAndSwap(false, true) {
		c.listener.forgetConn(c)
	}
	return err
}
