package listener

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"time"
)

// Times of connections without a completed handshake.
const (
	handshakeTime = 5 * time.Second
	lastTime      = 500 * time.Millisecond // of a handshake, and then of a request, when the listener is drained
)

// admitStranger adds a connection without a completed handshake. Beyond the bound, the oldest such connection from the
// busiest address is closed, so that a single address cannot block others.
func (l *Listener) admitStranger(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held++
	c.strange.Store(true)
	if len(l.strange) >= l.Strangers {
		oldest := l.oldestStranger()
		delete(l.strange, oldest)
		l.evicted++
		_ = oldest.below().Close() // no request can have arrived
	}
	l.strange[c] = struct{}{}
}

// oldestStranger returns the oldest connection without a completed handshake from the busiest address. The caller must
// hold l.mu.
func (l *Listener) oldestStranger() (oldest *conn) {
	counts := make(map[netip.Addr]int, len(l.strange))
	for c := range l.strange {
		counts[c.network()]++
	}
	most := 0
	for c := range l.strange {
		n := counts[c.network()]
		if n > most || n == most && c.idle.Load() < oldest.idle.Load() {
			most, oldest = n, c
		}
	}
	return oldest
}

// openAfterHandshake adds a connection to the open ones after its handshake, unless the bound is reached. last reports
// whether the listener is draining.
func (l *Listener) openAfterHandshake(c *conn) (added, last bool) {
	l.mu.Lock()
	_, present := l.strange[c] // otherwise it was closed in the meantime
	delete(l.strange, c)
	c.idle.Store(time.Now().UnixNano())
	var oldest *conn
	if present {
		oldest, added = l.addOpen(c)
	}
	last = l.draining
	l.closeWhenEmpty()
	l.mu.Unlock()
	if oldest != nil {
		oldest.endReading()
	}
	return added, last
}

// hurryStrangers sets a short deadline for handshakes in flight. The caller must hold l.mu.
func (l *Listener) hurryStrangers() {
	for c := range l.strange {
		_ = c.below().SetDeadline(time.Now().Add(lastTime))
	}
}

// shakeHands completes the handshake. It responds with 503 if the bound is reached.
func (c *conn) shakeHands() error {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
	defer cancel()
	if secure, is := c.Conn.(*tls.Conn); is {
		if err := secure.HandshakeContext(ctx); err != nil {
			return err
		}
	}
	c.strange.Store(false)
	added, last := c.listener.openAfterHandshake(c)
	if !added {
		c.leaving.Store(true)
		return c.answerCutHeaders(io.EOF)
	}
	if last {
		_ = c.Conn.SetDeadline(time.Time{}) // of hurryStrangers
		_ = c.reads.setDeadline(time.Now().Add(lastTime))
	}
	return nil
}

// below returns the connection below TLS.
func (c *conn) below() net.Conn {
	if secure, is := c.Conn.(*tls.Conn); is {
		return secure.NetConn()
	}
	return c.Conn
}

// network returns the address of the peer: of an IPv6 address the first 64 bits, and none for a Unix socket.
func (c *conn) network() netip.Addr {
	tcp, is := c.RemoteAddr().(*net.TCPAddr)
	if !is {
		return netip.Addr{}
	}
	address := tcp.AddrPort().Addr().Unmap().WithZone("")
	if address.Is4() {
		return address
	}
	p, err := address.Prefix(64)
	if err != nil {
		return address
	}
	return p.Addr()
}
