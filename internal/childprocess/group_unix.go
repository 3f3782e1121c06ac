//go:build unix

package childprocess

import (
	"os/exec"
	"syscall"
)

// separateGroup gives the process a group of its own, because Ctrl-C in a terminal must not end one in
// the middle of a call.
func separateGroup(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup signals the process and its children, because a starter such as npx runs the program as its child.
// hard kills.
func endGroup(command *exec.Cmd, hard bool) {
	signal := syscall.SIGTERM
	if hard {
		signal = syscall.SIGKILL
	}
	_ = syscall.Kill(-command.Process.Pid, signal) // an error means that the process has ended
}
