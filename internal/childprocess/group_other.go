//go:build !unix

package childprocess

import "os/exec"

func separateGroup(*exec.Cmd) {}

// endGroup kills the process, because there is no softer signal here.
func endGroup(command *exec.Cmd, _ bool) { _ = command.Process.Kill() }
