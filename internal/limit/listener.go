package limit

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Listener bounds the connections that are open at a time. For a new one beyond
// the bound the one that has been idle for longest is closed; if none is idle, the
// new one is. One that has sent nothing yet is idle. So who opens connections and does nothing with them shuts nobody
// out. Its ConnState goes into the http.Server that serves it.
type Listener struct {
	net.Listener
	max int

	mu      sync.Mutex
	open    map[*conn]struct{}
	evicted uint64
	refused uint64
}

// NewListener bounds l to max connections; 0 is no bound.
func NewListener(l net.Listener, max int) *Listener {
	return &Listener{Listener: l, max: max, open: make(map[*conn]struct{})}
}

// conn is a connection that knows since when it has been idle.
type conn struct {
	net.Conn
	listener *Listener
	idle     atomic.Int64 // Unix nanoseconds, 0 while it is not
}

// Accept returns the next connection for which there is room.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if mine, ok := l.enter(c); ok {
			return mine, nil
		}
		refuse(c)
	}
}

func (l *Listener) enter(c net.Conn) (*conn, bool) {
	l.mu.Lock()
	var oldest *conn
	if l.max > 0 && len(l.open) >= l.max {
		if oldest = l.longestIdle(); oldest == nil {
			l.refused++
			l.mu.Unlock()
			return nil, false
		}
		delete(l.open, oldest)
		l.evicted++
	}
	mine := &conn{Conn: c, listener: l}
	mine.idle.Store(time.Now().UnixNano()) // until it sends something
	l.open[mine] = struct{}{}
	l.mu.Unlock()
	if oldest != nil {
		oldest.Close()
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

// full is what a connection is told that there is no room for.
const full = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 52\r\n\r\n" +
	`{"error":"Too many connections","code":"overloaded"}`

// refuse says why, as far as that goes without waiting, and closes.
func refuse(c net.Conn) {
	_ = c.SetWriteDeadline(time.Now().Add(time.Millisecond))
	_, _ = c.Write([]byte(full))
	_ = c.Close()
}

// ConnState keeps account of which connections are idle.
func (l *Listener) ConnState(c net.Conn, s http.ConnState) {
	mine, ok := c.(*conn)
	switch {
	case !ok:
	case s == http.StateIdle:
		mine.idle.Store(time.Now().UnixNano())
	case s == http.StateActive:
		mine.idle.Store(0)
	}
}

// Close closes the connection and gives its room back.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.open, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
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
