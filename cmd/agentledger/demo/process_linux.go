package demo

import "syscall"

// attributes give a program a process group of its own, because Ctrl-C in a terminal is for the demo, which ends the
// others in their order. The program gets the signal when the demo is gone.
func attributes(last syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: last}
}
