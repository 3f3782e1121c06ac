package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/agentledger/agentledger/internal/config"
)

// probeBytes is the size of the file that must be written durably for a volume to count as writable: more than a start and
// some seconds of anchors need.
const probeBytes = 512 << 10

// probeName begins the names of the files that are written for a probe.
const probeName = "write-probe-"

// probeVolumes returns an error if one of the folders is not writable. It ignores folders that do not exist.
func probeVolumes(folders []string) error {
	for _, dir := range folders {
		if err := probeVolume(dir); err != nil {
			return fmt.Errorf("%s is not writable: %w", dir, err)
		}
	}
	return nil
}

func probeVolume(dir string) (err error) {
	removeProbes(dir)
	name := filepath.Join(dir, fmt.Sprint(probeName, os.Getpid()))
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	if _, err := f.Write(make([]byte, probeBytes)); err != nil {
		return err
	}
	return f.Sync()
}

// removeProbes removes files of a process that was killed during a probe.
func removeProbes(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, probeName+"*")) // fails for a malformed pattern alone
	for _, path := range left {
		_ = os.Remove(path)
	}
}

// writtenFolders are the folders that a service with these settings writes to.
func writtenFolders(c config.Store) []string {
	folders := []string{c.Data, c.AnchorsDir()}
	if c.Storage == "" {
		folders = append(folders, c.DatabaseDir())
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// volumeErrors are the errors of a volume that rejects the writes of every process. Permission errors are not among them:
// wrong permissions are a mistake in the configuration, and the start fails.
var volumeErrors = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO}

// refusedByVolume reports whether a write failed because of the volume.
func refusedByVolume(err error) bool {
	return slices.ContainsFunc(volumeErrors, func(cause error) bool { return errors.Is(err, cause) })
}

// mayBeUnwritten reports whether the file system may show data that it never wrote to the disk. A full volume fails a
// write before anything is acknowledged. A volume that failed, or that the system made read-only because it failed,
// may show data from its memory that is lost on the disk.
func mayBeUnwritten(reason error) bool {
	return errors.Is(reason, syscall.EIO) || errors.Is(reason, syscall.EROFS)
}

// waitUntilWritable waits until the folders are writable, which it checks after each pause. It returns false if ctx ends
// first.
func waitUntilWritable(ctx context.Context, try func() error, pause time.Duration) bool {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
			if try() == nil {
				return true
			}
		}
	}
}
