//go:build !linux

package demo

import "syscall"

// attributes give a program a process group of its own, because Ctrl-C in a terminal is for the demo, which ends the
// others in their order. A program outlives a demo that was killed.
func attributes(syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
