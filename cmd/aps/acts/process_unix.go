//go:build unix

package acts

import (
	"os"
	"syscall"
)

// forwarded are the signals that are forwarded to the program.
var forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}
