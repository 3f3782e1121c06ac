package secret

import "golang.org/x/sys/unix"

// ProtectProcess keeps other processes of the same user, for example programs that this one starts, from reading its
// environment and memory (PR_SET_DUMPABLE of prctl(2)). Only root can still read them. It covers neither the command
// line, which every user can read, nor files. Programs that are started do not inherit it. On systems other than Linux
// it does nothing.
func ProtectProcess() {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // the call has no failure for these arguments
}
