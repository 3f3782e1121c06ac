//go:build unix

package secret

import (
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// inOwnGroup reports whether the group of a file is the group of this process or one of its supplementary groups.
func inOwnGroup(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	if int(s.Gid) == os.Getegid() {
		return true
	}
	groups, err := os.Getgroups()
	return err == nil && slices.Contains(groups, int(s.Gid))
}
