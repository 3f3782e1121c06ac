// Package dial has the settings of a connection. It bounds how long a connection waits for a server whose machine
// falls silent.
//
// Invariants:
//
//   - Only TCP connections are set. A Unix socket ends with its server.
//   - Where the system has no such setting, it decides by itself.
package dial

import "syscall"

// Control is called with the socket of a new connection, before it connects (net.Dialer.Control).
type Control func(network, address string, raw syscall.RawConn) error
