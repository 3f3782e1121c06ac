//go:build unix

package childprocess

import (
	"os/exec"
	"syscall"
	"time"
)

// separateGroup starts the process in its own group, so that Ctrl-C in a terminal does not end it in the middle of a
// call.
func separateGroup(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(command.SysProcAttr)
}

// endGroup sends SIGKILL, or else SIGTERM, to the process and its descendants: a launcher such as npx runs the program
// as its child.
func endGroup(command *exec.Cmd, kill bool) {
	signal := syscall.SIGTERM
	if kill {
		signal = syscall.SIGKILL
	}
	_ = syscall.Kill(-command.Process.Pid, signal) // an error means that the process has ended
}

// groupPoll is the time between two checks of whether a group is empty. The system does not report the end of
// processes that are not children of this one.
const groupPoll = 20 * time.Millisecond

// endDescendants ends what is left of the group after its first process has ended: a launcher can end at SIGTERM
// while the program that it runs ignores the signal. The descendants get patience after SIGTERM, and then SIGKILL.
func endDescendants(command *exec.Cmd, patience time.Duration) {
	endGroup(command, false)
	for end := time.Now().Add(patience); groupExists(command); time.Sleep(groupPoll) {
		if time.Now().After(end) {
			endGroup(command, true)
			return
		}
	}
}

func groupExists(command *exec.Cmd) bool { return syscall.Kill(-command.Process.Pid, 0) == nil }
