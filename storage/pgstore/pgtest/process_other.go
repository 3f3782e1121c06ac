//go:build !linux

package pgtest

import "syscall"

// endsWithUs does nothing here: a server outlives a test process that was killed.
func endsWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
