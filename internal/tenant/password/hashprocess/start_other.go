//go:build !linux

package hashprocess

import (
	"os"
	"os/exec"
)

// thisProgram is the file of the running program.
var thisProgram = os.Args[0]

// startBehindOthers starts a process of the usual priority, where no other is known.
func startBehindOthers(cmd *exec.Cmd) error { return cmd.Start() }
