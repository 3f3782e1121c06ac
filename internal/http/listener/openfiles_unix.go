//go:build unix

package listener

import "syscall"

// OpenFileLimit returns how many files this process may have open. Go's runtime has raised
// the soft limit to the hard one by then (package os).
func OpenFileLimit() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil || uint64(r.Cur) > unlimited {
		return unlimited
	}
	return int(r.Cur)
}
