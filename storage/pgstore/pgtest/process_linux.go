package pgtest

import (
	"fmt"
	"os/exec"
	"syscall"
)

// endsWithUs makes the system end the server when the test process is gone, also
// when it panicked or was killed.
func endsWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT} }

// LimitFiles bounds the length of files that the server writes (RLIMIT_FSIZE,
// setrlimit(2)): beyond it a write fails with EFBIG. 0 takes the bound away.
func (s *Server) LimitFiles(bytes uint64) error {
	limit := "unlimited:"
	if bytes > 0 {
		limit = fmt.Sprint(bytes, ":")
	}
	parent := s.process.Process.Pid
	for _, pid := range append([]int{parent}, childrenOf(parent)...) { // those that come now have the parent's
		c := exec.Command("prlimit", "--pid", fmt.Sprint(pid), "--fsize="+limit) // of util-linux
		// The user root may lack the right, the owner has it.
		c.SysProcAttr = &syscall.SysProcAttr{Credential: s.programs.User}
		if out, err := c.CombinedOutput(); err != nil && runs(pid) {
			return fmt.Errorf("limit the files of postgres: %w: %s", err, out)
		}
	}
	return nil
}
