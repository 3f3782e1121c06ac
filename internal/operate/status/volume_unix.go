//go:build linux || darwin || freebsd

package status

import "golang.org/x/sys/unix"

// measureVolume returns the space of the volume that contains path.
func measureVolume(path string) (space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return space{}, err
	}
	unit := uint64(s.Bsize)
	return space{free: uint64(max(0, int64(s.Bavail))) * unit, size: uint64(s.Blocks) * unit}, nil
}
