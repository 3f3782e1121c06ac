//go:build !linux

package demo

import "syscall"

// attributes give a program its own process group, because Ctrl-C in a terminal is for the demo, which ends the other
// programs in their order. A program outlives a demo that is killed.
func attributes(syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
