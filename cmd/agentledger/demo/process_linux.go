package demo

import "syscall"

// attributes give a program its own process group, because Ctrl-C in a terminal is for the demo, which ends the other
// programs in their order. The program gets the signal if the demo is killed.
func attributes(last syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: last}
}
