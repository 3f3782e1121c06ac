package listener

import "net"

// NewStrictConn returns a connection within a request, whose deadlines are not extended.
func NewStrictConn(c net.Conn) net.Conn {
	strict := newAcceptedConn(c, NewListener(nil, 0))
	strict.unused.Store(false)
	strict.idle.Store(0)
	strict.reads.grace, strict.writes.grace = 0, 0
	return strict
}
