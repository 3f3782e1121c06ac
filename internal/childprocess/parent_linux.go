package childprocess

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// dieWithParent asks the system to kill the process when the thread that starts it ends, which includes any end of
// this program.
func dieWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }

// starts receives commands for the thread that starts all processes and never ends.
var starts = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range work {
			start()
		}
	}()
	return work
})

// start starts the command on a thread that lives as long as this program. The runtime may end any other thread.
func start(command *exec.Cmd) error {
	failed := make(chan error, 1)
	starts() <- func() { failed <- command.Start() }
	return <-failed
}
