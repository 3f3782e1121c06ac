//go:build unix

package childprocess

import (
	"os/exec"
	"syscall"
)

// separateGroup starts the process in its own group, so that Ctrl-C in a terminal does not end it in the middle of a
// call.
func separateGroup(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup sends SIGKILL, or else SIGTERM, to the process and its descendants: a launcher such as npx runs the program
// as its child.
func endGroup(command *exec.Cmd, kill bool) {
	signal := syscall.SIGTERM
	if kill {
		signal = syscall.SIGKILL
	}
	_ = syscall.Kill(-command.Process.Pid, signal) // an error means that the process has ended
}
