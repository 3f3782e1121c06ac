//go:build !linux

package dial

import (
	"syscall"
	"time"
)

// UserTimeout leaves it to the system how long sent bytes may stay unacknowledged.
func UserTimeout(time.Duration) Control {
	return func(string, string, syscall.RawConn) error { return nil }
}
