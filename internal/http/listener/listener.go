// Package listener accepts the connections of HTTP servers, in a bounded number, with
// deadlines that are cheap to move. It makes contexts with such deadlines for requests.
//
// Invariants:
//
//   - A connection on which a request has begun to arrive is not closed before the request
//     is answered, unless its client is too slow.
//   - A call on a connection does not end before its deadline. A deadline that was
//     overlooked, because the process did not run, is extended once.
//   - Setting a deadline into the past ends the call that is under way.
//   - At most max connections are open, and Spare more are held that have to end. Where Strangers is set, those that
//     have not shaken hands are counted by themselves and push no other connection out.
//   - A Context ends at its deadline or with its parent. It has a timer only while
//     its end is waited for.
package listener

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Listener bounds the connections that are open at a time. For a new one beyond the
// bound, the connection that has been idle for longest is closed; if none is idle, the
// new one is refused. A connection on which nothing was sent yet is idle, so idle
// connections shut no client out. Set ConnState as the ConnState of the http.Server that
// serves the listener. Its methods may be called concurrently.
type Listener struct {
	net.Listener

	// Unused is how long a connection may wait for its first request, 0 for no bound.
	// http.Server.IdleTimeout bounds the wait for later requests.
	Unused time.Duration

	// Spare is how many connections may be held beyond the bound. These are connections
	// that have to end but may still get an answer. Accept waits while there are more,
	// so that file descriptors are bounded too. 0 for no bound.
	Spare int

	// Strangers is how many connections may be open, besides max, that have not shaken hands.
	// 0: they count as all others. Set it for connections of crypto/tls alone.
	Strangers int

	// Next is how long a connection is kept for its next request after an answer, once a drain has begun. A client
	// that sends its requests one after another is told by the answer that the connection ends, instead of losing a
	// request that it sends at that moment.
	Next time.Duration

	max       int
	closeOnce sync.Once
	refusals  chan struct{} // holds one for each refusal that is being written

	mu       sync.Mutex
	open     map[*conn]struct{}
	strange  map[*conn]struct{} // those that have not shaken hands, where Strangers is set
	held     int                // connections that are not closed, evicted and refused ones included
	released *sync.Cond         // held has fallen, or draining is true; with mu
	evicted  uint64
	refused  uint64
	draining bool
	accepted chan struct{} // closed when draining and no further connection is accepted
	empty    chan struct{} // closed when draining and no connection is open
}

// NewListener bounds l to max connections; 0 is no bound.
func NewListener(l net.Listener, max int) *Listener {
	bounded := &Listener{
		Listener: l, max: max, open: make(map[*conn]struct{}), strange: make(map[*conn]struct{}),
		refusals: make(chan struct{}, maxRefusals), accepted: make(chan struct{}), empty: make(chan struct{}),
	}
	bounded.released = sync.NewCond(&bounded.mu)
	return bounded
}

// Accept returns the next connection for which there is room.
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

// awaitSpare returns when one more connection may be held.
func (l *Listener) awaitSpare() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.max > 0 && l.Spare > 0 && l.held >= l.max+l.Strangers+l.Spare && !l.draining {
		l.released.Wait()
	}
}

// admitConn returns the connection as an open one, or nil when there is no room for it.
func (l *Listener) admitConn(c net.Conn) *conn {
	admitted := newAcceptedConn(c, l)
	if l.Strangers > 0 {
		l.admitStranger(admitted)
		return admitted
	}
	l.mu.Lock()
	l.held++
	oldest, there := l.addOpen(admitted)
	l.mu.Unlock()
	if oldest != nil {
		oldest.endReading()
	}
	if !there {
		return nil
	}
	return admitted
}

// addOpen adds a connection to the open ones, if there is room. It returns the one that has to end for it, nil for
// none. The caller holds l.mu.
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

// maxRefusals is how many refused connections wait for their client at a time.
const maxRefusals = 64

// refuseConn answers 503 and closes the connection. It waits a moment until the client
// has read the answer, but not for more than maxRefusals clients at a time.
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

// ConnState notes which connections are idle.
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

// forgetConn gives the room of a closed connection back.
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
	Evicted uint64 // idle ones that were closed to make room
	Refused uint64 // those for which there was no room
}

// Connections returns the counts at the moment.
func (l *Listener) Connections() Connections {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Connections{Open: len(l.open) + len(l.strange), Evicted: l.evicted, Refused: l.refused}
}
