package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// smallVolume mounts a file system in memory that only this thread and its children see, and that disappears with them.
// An error means that this process may not mount.
func smallVolume(t *testing.T, bytes uint64) (dir string, err error) {
	t.Helper()
	dir = t.TempDir()
	runtime.LockOSThread() // permanently: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return "", fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return "", fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("small", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=755", bytes)); err != nil {
		return "", fmt.Errorf("mount: %w", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }) // at the latest when the thread ends
	return dir, nil
}

// occupy writes a file that leaves rest bytes of a volume free.
func occupy(t *testing.T, dir, name string, rest uint64) {
	t.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	free := s.Bavail * uint64(s.Bsize)
	if err := os.WriteFile(filepath.Join(dir, name), make([]byte, free-min(free, rest)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A volume that becomes full under load, or is made read-only, loses nothing of the public log: the next start shows
// what was acknowledged, and writes again as soon as possible. If nothing can be mounted, TestVolumeComesBack replaces
// this test.
func TestFullVolume(t *testing.T) {
	t.Parallel()
	dir, err := smallVolume(t, 64<<20)
	if err != nil {
		t.Logf("not mounted: %v", err)
		TestVolumeComesBack(t)
		return
	}
	h := newHouse(t, filepath.Join(dir, "data"))
	p := h.start()
	h.found(p)
	h.must(20)
	occupy(t, dir, "filler", 256<<10)
	for deadline := time.Now().Add(2 * time.Minute); h.send(h.red, 20<<10) == nil; {
		if time.Now().After(deadline) {
			t.Fatal("the volume did not become full")
		}
	}
	p.kill() // or it has already ended
	occupy(t, dir, "rest", 0)

	p = h.start()
	h.waitFor("ok, read-only\n")
	before := h.reads()
	h.refusesWrites()
	h.keeps()
	p.kill()
	p = h.start()
	h.shows("killed and started again", before)
	for _, name := range []string{"filler", "rest"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	h.waitFor("ok\n")
	h.writesAgain()
	h.keeps()
	before = h.reads()
	p.terminate()

	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	p = h.start()
	h.waitFor("ok, read-only\n")
	h.shows("on a read-only volume", before)
	h.refusesWrites()
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	h.waitFor("ok\n")
	h.writesAgain()
	h.keeps()
	p.terminate()
	if out, exit := command(t, "agentledger", "fsck", "--data", h.dir); exit != 0 {
		t.Errorf("fsck: %d %s", exit, out)
	}
}
