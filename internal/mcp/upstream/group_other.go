//go:build !unix

package upstream

import "os/exec"

func separateGroup(*exec.Cmd) {}

// endGroup kills the process, because there is no softer signal here.
func endGroup(command *exec.Cmd, _ bool) { _ = command.Process.Kill() }
