//go:build !linux

package pgtest

import (
	"errors"
	"os"
	"syscall"
)

// endsWithUs has no effect on this system: a server outlives a test process that was killed.
func endsWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// LimitFiles is supported only on Linux.
func (s *Server) LimitFiles(uint64) error {
	return errors.New("limit the files of postgres: not on this system")
}

// serverFolder returns the folder for temporary files.
func serverFolder() string { return os.TempDir() }
