package pgtest

import "syscall"

// endsWithUs makes the system end the server when the test process is gone, also
// when it panicked or was killed.
func endsWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT} }
