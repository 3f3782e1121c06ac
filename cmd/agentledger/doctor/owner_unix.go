//go:build unix

package doctor

import (
	"io/fs"
	"syscall"
)

// ownerOf returns the owner of a file.
func ownerOf(info fs.FileInfo) (user int, known bool) {
	s, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return int(s.Uid), true
}

// deviceOf returns the volume of a file.
func deviceOf(info fs.FileInfo) (device uint64, known bool) {
	s, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return uint64(s.Dev), true
}
