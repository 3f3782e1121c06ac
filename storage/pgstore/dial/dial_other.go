//go:build !linux

package dial

import (
	"syscall"
	"time"
)

// UserTimeout has no effect on this system, which decides how long sent bytes may stay unacknowledged.
func UserTimeout(time.Duration) Control {
	return func(string, string, syscall.RawConn) error { return nil }
}
