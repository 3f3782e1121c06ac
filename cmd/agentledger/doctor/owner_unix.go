//go:build unix

package doctor

import (
	"io/fs"
	"syscall"
)

// ownerOf returns the user that a file is of.
func ownerOf(info fs.FileInfo) (user int, known bool) {
	s, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return int(s.Uid), true
}

// deviceOf returns the volume that a file lies on.
func deviceOf(info fs.FileInfo) (device uint64, known bool) {
	s, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return uint64(s.Dev), true
}
