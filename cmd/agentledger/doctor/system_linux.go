package doctor

import "golang.org/x/sys/unix"

// isClockSynchronized asks the kernel whether a time service synchronizes the clock.
func isClockSynchronized() (synchronized, known bool) {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return false, false
	}
	return t.Status&unix.STA_UNSYNC == 0, true
}

// volumeKind names file systems on which a sync does not mean what it means on a disk.
func volumeKind(path string) string {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return "unknown"
	}
	switch uint32(s.Type) {
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.RAMFS_MAGIC:
		return "ramfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay"
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	}
	return "disk"
}
