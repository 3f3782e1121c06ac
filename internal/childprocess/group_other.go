//go:build !unix

package childprocess

import (
	"os/exec"
	"time"
)

func separateGroup(*exec.Cmd) {}

// endGroup kills the process: this system has no gentler signal.
func endGroup(command *exec.Cmd, _ bool) { _ = command.Process.Kill() }

// endDescendants does nothing: this system has no process groups.
func endDescendants(*exec.Cmd, time.Duration) {}
