package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// Elapsed returns the time since boot.
func (m machine) Elapsed() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil { // a kernel before 2.6.39
		panic("read CLOCK_BOOTTIME: " + err.Error())
	}
	return time.Duration(t.Nano())
}
