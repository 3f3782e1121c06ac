//go:build unix

package listener

import "syscall"

// OpenFileLimit returns how many files this process may open. Package os has raised
// the soft limit to the hard limit.
func OpenFileLimit() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil || uint64(r.Cur) > unlimited {
		return unlimited
	}
	return int(r.Cur)
}
