//go:build !unix

package childprocess

import "os/exec"

func separateGroup(*exec.Cmd) {}

// endGroup kills the process: this system has no gentler signal.
func endGroup(command *exec.Cmd, _ bool) { _ = command.Process.Kill() }
