package admission

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Listener bounds the connections that are open at a time. For a new one beyond
// the bound the one that has been idle for longest is closed; if none is idle, the
// new one is. One that has sent nothing yet is idle. So who opens connections and does nothing with them shuts nobody
// out. Its ConnState goes into the http.Server that serves it.
type Listener struct {
	net.Listener

	// Unused is how long a connection may wait for its first request, 0 for no bound.
	// http.Server's IdleTimeout is for those after it.
	Unused time.Duration

	// Spare is how many connections may be held beyond the bound: those that are to end
	// and are not closed yet, since they may still be answered. Accept waits when there
	// are more, so that descriptors are bounded too. 0 for no bound.
	Spare int

	max     int
	close   sync.Once
	refusal chan struct{} // holds one for each refusal that is being told

	mu       sync.Mutex
	open     map[*conn]struct{}
	held     int        // connections that are not closed, those that were evicted or refused included
	closed   *sync.Cond // held is less, or draining is true; with mu
	evicted  uint64
	refused  uint64
	draining bool
	accepted chan struct{} // closed when draining and nothing more is accepted
	empty    chan struct{} // closed when draining and none is open
}

// NewListener bounds l to max connections; 0 is no bound.
func NewListener(l net.Listener, max int) *Listener {
	mine := &Listener{
		Listener: l, max: max, open: make(map[*conn]struct{}), refusal: make(chan struct{}, maxRefusals),
		accepted: make(chan struct{}), empty: make(chan struct{}),
	}
	mine.closed = sync.NewCond(&mine.mu)
	return mine
}

// Accept returns the next connection for which there is room.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		l.awaitSpare()
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, l.last(err)
		}
		if mine, ok := l.enter(c); ok {
			return mine, nil
		}
		l.refuse(c)
	}
}

// awaitSpare returns when one more connection may be held.
func (l *Listener) awaitSpare() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.max > 0 && l.Spare > 0 && l.held >= l.max+l.Spare && !l.draining {
		l.closed.Wait()
	}
}

func (l *Listener) enter(c net.Conn) (*conn, bool) {
	l.mu.Lock()
	var oldest *conn
	l.held++
	if l.max > 0 && len(l.open) >= l.max {
		if oldest = l.longestIdle(); oldest == nil {
			l.refused++
			l.mu.Unlock()
			return nil, false
		}
		delete(l.open, oldest)
		l.evicted++
	}
	mine := newConn(c, l)
	l.open[mine] = struct{}{}
	l.mu.Unlock()
	if oldest != nil {
		oldest.leave()
	}
	return mine, true
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

// maxRefusals is how many connections are told at a time that there is no room.
const maxRefusals = 64

// refuse says why and closes. It waits a moment for the other end to hear it; where
// too many are to be told, it closes at once.
func (l *Listener) refuse(c net.Conn) {
	mine := newConn(c, l)
	mine.leaving.Store(true)
	_ = mine.explain(io.EOF)
	select {
	case l.refusal <- struct{}{}:
		go func() {
			_ = mine.CloseWrite()
			_ = mine.Close()
			<-l.refusal
		}()
	default:
		_ = mine.Close()
	}
}

// ConnState keeps account of which connections are idle.
func (l *Listener) ConnState(c net.Conn, s http.ConnState) {
	mine, ok := c.(*conn)
	switch {
	case !ok:
	case s == http.StateIdle:
		mine.idle.Store(time.Now().UnixNano())
		if l.isDraining() {
			mine.leave()
		}
	case s == http.StateActive:
		mine.idle.Store(0)
		mine.heading.Store(false)
	}
}

// forget gives the room of a connection back that was closed.
func (l *Listener) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
	l.held--
	l.closed.Signal()
	l.tellEmpty()
}

// Connections says how many connections there are and what became of others.
type Connections struct {
	Open    int
	Evicted uint64 // idle ones that were closed to make room
	Refused uint64 // those for which there was no room
}

// Connections returns figures of the moment.
func (l *Listener) Connections() Connections {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Connections{Open: len(l.open), Evicted: l.evicted, Refused: l.refused}
}
