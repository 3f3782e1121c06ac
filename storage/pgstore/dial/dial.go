// Package dial contains the settings of connections to PostgreSQL, and bounds how long a connection waits for a server
// whose machine has become unreachable.
//
// Invariants:
//
//   - Only TCP connections are bounded. A Unix socket is closed when its server ends.
//   - On systems without such a setting, the system's default applies.
package dial

import "syscall"

// Control is called with the socket of a new connection, before it connects (net.Dialer.Control).
type Control func(network, address string, raw syscall.RawConn) error
