//go:build unix

package secret

import (
	"io/fs"
	"os"
	"syscall"
)

// ModesAreReal reports whether the mode of a file shows who can change it.
const ModesAreReal = true

func checkAccess(info fs.FileInfo) error {
	return checkMode(info.Mode().Perm(), fileGroup(info), ownGroups())
}

// fileGroup returns the group of a file, or noGroup if it is unknown.
func fileGroup(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Gid)
	}
	return noGroup
}

// ownGroups returns the group of this process and its supplementary groups.
func ownGroups() []int {
	supplementary, _ := os.Getgroups() // without them, only the group of the process is accepted
	return append(supplementary, os.Getegid())
}
