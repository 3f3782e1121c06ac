package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A really full disk of the journals: nothing runs, and the message explains what to do. Once there is space again, the
// same programs continue. If nothing can be mounted, guard's TestFullDisk replaces this test.
func TestProgramsOnFullDisk(t *testing.T) {
	p := startProcess(t, t.TempDir())
	org := p.found(t.Context(), "red", nil)
	disk, err := smallVolume(t, 2<<20)
	if err != nil {
		t.Logf("not mounted: %v", err)
		return
	}
	a := newActor(t, p.main, org, disk)
	s := a.gateway("shop")
	occupy(t, disk, "filler", 0)
	a.wantRefused(s, "full", 1, "no space left on device", "Make room on the disk of the journal")
	if err := os.Remove(filepath.Join(disk, "filler")); err != nil {
		t.Fatal(err)
	}
	a.wantDone(s, "room", 2)
}
