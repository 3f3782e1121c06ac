//go:build !linux

package childprocess

import "os/exec"

func start(command *exec.Cmd) error { return command.Start() }
