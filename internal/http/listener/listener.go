// Package listener bounds the connections of HTTP servers, drains them, and provides request contexts whose deadlines can
// be moved. It hides from http.Server which connections are evicted or refused, and deadlines that passed while the
// process was stopped.
//
// Invariants:
//
//   - A connection on which a request has begun to arrive is not closed before the
//     response, unless its client is too slow.
//   - A call on a connection does not end before its deadline. A deadline that was
//     overlooked because the process did not run is extended once.
//   - Setting a deadline in the past ends the call in flight.
//   - At most max connections are open, and at most Spare more are ending. If Strangers is set, connections without a
//     completed handshake are counted separately and never evict another connection.
//   - A Context ends at its deadline or with its parent. It uses a timer only after a call of Done.
package listener

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Listener bounds the number of open connections. A new connection beyond the
// bound evicts the connection that has been idle longest. If none is idle, the
// new one is refused. A connection without any request yet is idle, so idle
// connections never block new clients. The http.Server that serves the listener must use ConnState as its
// ConnState. All methods may be called concurrently.
type Listener struct {
	net.Listener

	// Unused is how long a connection may wait for its first request. If zero, there is no bound.
	// http.Server.IdleTimeout bounds the wait for later requests.
	Unused time.Duration

	// Spare bounds the evicted and refused connections that may still get a response. Accept waits while there are more,
	// so file descriptors are bounded too. If zero, there is no bound.
	Spare int

	// Strangers bounds the connections without a completed TLS handshake, in addition to max.
	// If zero, they count like all others. It must be set only for connections of crypto/tls.
	Strangers int

	// Next is how long a connection is kept open for its next request after a response, once a drain has begun. The
	// response to that request indicates that the connection ends, so clients do not lose a request that they send at
	// that moment.
	Next time.Duration

	max       int
	closeOnce sync.Once
	refusals  chan struct{} // contains an element for each refusal being written

	mu       sync.Mutex
	open     map[*conn]struct{}
	strange  map[*conn]struct{} // without a completed handshake, if Strangers is set
	held     int                // connections that are not closed, including evicted and refused ones
	released *sync.Cond         // signals that held has decreased or draining is true; with mu
	evicted  uint64
	refused  uint64
	draining bool
	accepted chan struct{} // closed when draining and no further connection is accepted
	empty    chan struct{} // closed when draining and no connection is open
}

// NewListener bounds l to max connections. If max is zero, there is no bound.
func NewListener(l net.Listener, max int) *Listener {
	bounded := &Listener{
		Listener: l, max: max, open: make(map[*conn]struct{}), strange: make(map[*conn]struct{}),
		refusals: make(chan struct{}, maxRefusals), accepted: make(chan struct{}), empty: make(chan struct{}),
	}
	bounded.released = sync.NewCond(&bounded.mu)
	return bounded
}

// Accept returns the next connection within the bound. It refuses others.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		l.awaitSpare()
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, l.endAccepting(err)
		}
		if admitted := l.admitConn(c); admitted != nil {
			return admitted, nil
		}
		l.refuseConn(c)
	}
}

// awaitSpare waits until one more connection may be held.
func (l *Listener) awaitSpare() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.max > 0 && l.Spare > 0 && l.held >= l.max+l.Strangers+l.Spare && !l.draining {
		l.released.Wait()
	}
}

// admitConn returns an open connection, or nil if the bound is reached and none is idle.
func (l *Listener) admitConn(c net.Conn) *conn {
	admitted := newAcceptedConn(c, l)
	if l.Strangers > 0 {
		l.admitStranger(admitted)
		return admitted
	}
	l.mu.Lock()
	l.held++
	oldest, added := l.addOpen(admitted)
	l.mu.Unlock()
	if oldest != nil {
		oldest.endReading()
	}
	if !added {
		return nil
	}
	return admitted
}

// addOpen adds a connection to the open ones, unless the bound is reached and none is idle. It returns the connection that
// it evicted, or nil. The caller must hold l.mu.
func (l *Listener) addOpen(c *conn) (oldest *conn, added bool) {
	if l.max > 0 && len(l.open) >= l.max {
		if oldest = l.longestIdle(); oldest == nil {
			l.refused++
			return nil, false
		}
		delete(l.open, oldest)
		l.evicted++
	}
	l.open[c] = struct{}{}
	return oldest, true
}

func (l *Listener) longestIdle() *conn {
	var oldest *conn
	var since int64
	for c := range l.open {
		if idle := c.idle.Load(); idle > 0 && (oldest == nil || idle < since) {
			oldest, since = c, idle
		}
	}
	return oldest
}

// maxRefusals bounds the refused connections that wait for their clients.
const maxRefusals = 64

// refuseConn responds with 503 and closes the connection. It briefly waits until the client
// has read the response, but for at most maxRefusals clients at a time.
func (l *Listener) refuseConn(c net.Conn) {
	refused := newAcceptedConn(c, l)
	refused.leaving.Store(true)
	_ = refused.answerCutHeaders(io.EOF)
	select {
	case l.refusals <- struct{}{}:
		go func() {
			_ = refused.CloseWrite()
			_ = refused.Close()
			<-l.refusals
		}()
	default:
		_ = refused.Close()
	}
}

// ConnState records which connections are idle.
func (l *Listener) ConnState(c net.Conn, s http.ConnState) {
	known, ok := c.(*conn)
	switch {
	case !ok:
	case s == http.StateIdle:
		known.idle.Store(time.Now().UnixNano())
		if l.isDraining() {
			known.endAfterNext()
		}
	case s == http.StateActive:
		known.idle.Store(0)
		known.heading.Store(false)
	}
}

// forgetConn removes a closed connection.
func (l *Listener) forgetConn(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
	delete(l.strange, c)
	l.held--
	l.released.Signal()
	l.closeWhenEmpty()
}

// Connections counts the connections of a listener.
type Connections struct {
	Open    int
	Evicted uint64 // idle ones that were closed in favor of new ones
	Refused uint64 // rejected because the bound was reached and none was idle
}

// Connections returns the current counts.
func (l *Listener) Connections() Connections {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Connections{Open: len(l.open) + len(l.strange), Evicted: l.evicted, Refused: l.refused}
}
