package dial

import (
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// UserTimeout bounds how long sent bytes may stay unacknowledged (TCP_USER_TIMEOUT, tcp(7)). Keep-alives detect a lost
// peer only while nothing is in transit.
func UserTimeout(longest time.Duration) Control {
	return func(network, _ string, raw syscall.RawConn) error {
		if !strings.HasPrefix(network, "tcp") {
			return nil
		}
		var err error
		control := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(longest.Milliseconds()))
		})
		if control != nil {
			return control
		}
		return err
	}
}
