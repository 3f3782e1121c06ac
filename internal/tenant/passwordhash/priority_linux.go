package passwordhash

import "golang.org/x/sys/unix"

// priority of a hash (see nice(2)): a tenth of the share of a usual thread while all cores are busy, so that
// people can sign in beside any load, and nothing while a usual thread wakes up.
const priority = 10

// lowerPriority makes the calling thread give way to all others. A kernel that refuses is no fault,
// because the hash is as right as before, only in the way of others.
func lowerPriority() {
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), priority)
}
