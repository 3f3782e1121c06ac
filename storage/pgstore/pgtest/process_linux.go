package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// endsWithUs makes the system end the server when the test process ends, including by a panic or a signal.
func endsWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT} }

// LimitFiles bounds the size of files that the server writes (RLIMIT_FSIZE, setrlimit(2)): a write beyond it fails with
// EFBIG. 0 removes the bound.
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

// memory is a file system in memory, where a sync costs nothing. A server there still runs with fsync=on.
const memory = "/dev/shm"

// leftFor is how old a directory must be before it is removed: its process may be in another container.
const leftFor = time.Hour

// enoughMemory is the free space, in bytes, that serverFolder asks for.
const enoughMemory = 2 << 30

// serverFolder returns the folder for the directories of servers: in memory if there is enough of it, and otherwise the
// folder for temporary files. It removes directories in memory that killed test processes left behind.
func serverFolder() string {
	var s syscall.Statfs_t
	if err := syscall.Statfs(memory, &s); err != nil || s.Bavail*uint64(s.Bsize) < enoughMemory {
		return os.TempDir()
	}
	left, _ := filepath.Glob(filepath.Join(memory, dirPrefix+"*")) // the pattern is well-formed
	for _, dir := range left {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), dirPrefix), "-")
		pid, err := strconv.Atoi(owner)
		if info, statErr := os.Stat(dir); err == nil && statErr == nil && !runs(pid) && time.Since(info.ModTime()) > leftFor {
			_ = os.RemoveAll(dir) // another process may remove it too
		}
	}
	return memory
}
