package hashprocess

import (
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// thisProgram is the running program, also when its file was replaced or removed.
const thisProgram = "/proc/self/exe"

// priority of the processes (see nice(2)): a tenth of the share of a usual thread while all cores are busy, so that
// people can sign in beside any load, and nothing while a usual thread wakes up.
const priority = 10

// startBehindOthers starts a process from a thread of lower priority, because a process inherits that of the
// thread that starts it. The thread ends with the goroutine, because its priority can't be raised again. The
// process is in a group of its own, so that a signal of the terminal reaches the service alone.
func startBehindOthers(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		// A kernel that refuses is no fault, because the key is as right, only in the way of others.
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), priority)
		started <- cmd.Start()
	}()
	return <-started
}
