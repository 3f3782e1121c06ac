// Package listener makes deadlines cheap that are moved, or set, far more often than
// they pass: those of connections, which net/http moves eight times a request, and those
// of requests. Each time costs a timer of the runtime otherwise.
//
// What always holds:
//
//   - A Context ends at its deadline or with its parent, for whoever waits or asks. It
//     has a timer only while somebody waits.
//   - A call ends by its deadline as it would without this package: not before it,
//     and not later than the connection below ends it.
//   - The connection below is told of a deadline when a call waits that has to end
//     earlier than it would, and when one was ended too early and goes on.
//   - Who moves a deadline into the past ends the call that is under way.
package listener

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// Listener accepts connections whose deadlines are cheap to move.
type Listener struct{ net.Listener }

// Accept implements net.Listener.
func (l Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return New(c), nil
}

// SetDeadline sets the deadline of Accept, if the listener below has one.
func (l Listener) SetDeadline(t time.Time) error {
	if below, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); ok {
		return below.SetDeadline(t)
	}
	return errors.ErrUnsupported
}

// Conn is a connection whose deadlines are cheap to move. One goroutine reads and one
// writes at a time; all other methods may be called concurrently.
type Conn struct {
	net.Conn
	read, write side
}

// New returns c with deadlines that are cheap to move. They are not moved on c itself
// any more.
func New(c net.Conn) *Conn {
	return &Conn{Conn: c, read: side{tell: c.SetReadDeadline}, write: side{tell: c.SetWriteDeadline}}
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (n int, err error) {
	err = c.read.begin()
	for again := err == nil; again; {
		n, err = c.Conn.Read(p)
		err, again = c.read.end(err)
	}
	return n, err
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (done int, err error) {
	err = c.write.begin()
	for again := err == nil; again; {
		var n int
		n, err = c.Conn.Write(p[done:])
		done += n
		err, again = c.write.end(err)
	}
	return done, err
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.read.move(t), c.write.move(t))
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.read.move(t) }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.write.move(t) }

// CloseRead shuts the reading side down, if the connection below can.
func (c *Conn) CloseRead() error {
	if below, ok := c.Conn.(interface{ CloseRead() error }); ok {
		return below.CloseRead()
	}
	return errors.ErrUnsupported
}

// CloseWrite shuts the writing side down, if the connection below can.
func (c *Conn) CloseWrite() error {
	if below, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return below.CloseWrite()
	}
	return errors.ErrUnsupported
}

// side is the deadline of reading or of writing.
type side struct {
	tell func(time.Time) error // moves that of the connection below

	mu     sync.Mutex
	wanted time.Time // zero: none
	told   time.Time // what the connection below knows, never later than wanted while a call waits
	waits  bool      // a call is under way below
}

// move sets the deadline. It is told at once if it has to end the call under way.
func (s *side) move(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = t
	if s.waits && s.late() {
		return s.pass()
	}
	return nil
}

// late reports whether the connection below would end a call too late.
func (s *side) late() bool {
	return !s.wanted.IsZero() && (s.told.IsZero() || s.wanted.Before(s.told))
}

// pass tells the connection below of the deadline.
func (s *side) pass() error {
	s.told = s.wanted
	return s.tell(s.wanted)
}

// over reports whether the deadline has passed.
func (s *side) over() bool { return !s.wanted.IsZero() && !time.Now().Before(s.wanted) }

// begin comes before a call. With an error, which is a time-out if the deadline has
// passed, there is no call and no end.
func (s *side) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.late() {
		if s.over() {
			return os.ErrDeadlineExceeded
		}
		if err := s.pass(); err != nil {
			return err
		}
	}
	s.waits = true
	return nil
}

// end comes after a call that ended with err. again says that it was ended before
// its deadline and is to be made once more.
func (s *side) end(err error) (_ error, again bool) {
	if err == nil {
		s.mu.Lock()
		s.waits = false
		s.mu.Unlock()
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, os.ErrDeadlineExceeded) && !s.over() {
		if err = s.pass(); err == nil {
			return nil, true
		}
	}
	s.waits = false
	return err, false
}
