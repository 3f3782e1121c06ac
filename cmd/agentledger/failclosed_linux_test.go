package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A disk of the journals that is really full: nothing runs, and the message says what to do. When there is room again,
// the same programs go on. Where nothing can be mounted, guard's TestFullDisk stands for it.
func TestProgramsOnFullDisk(t *testing.T) {
	p := startProcess(t, t.TempDir())
	org := p.found(t.Context(), "red", nil)
	disk, err := smallVolume(t, 2<<20)
	if err != nil {
		t.Logf("not mounted: %v", err)
		return
	}
	a := newActor(t, p.main, org, disk)
	s := a.gateway()
	occupy(t, disk, "filler", 0)
	a.wantRefused(s, "full", 1, "no space left on device", "Make room on the disk of the journal")
	if err := os.Remove(filepath.Join(disk, "filler")); err != nil {
		t.Fatal(err)
	}
	a.wantDone(s, "room", 2)
}
