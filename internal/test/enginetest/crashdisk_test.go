package enginetest_test

import (
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/internal/test/enginetest"
)

// TestImagesBesideReuse takes images while files are reused. With vfs.MemFS alone, both deadlock.
func TestImagesBesideReuse(t *testing.T) {
	disk := enginetest.NewCrashDisk()
	names := []string{"one", "two"}
	f, err := disk.Create(names[0], vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	both.Go(func() {
		for range 2000 {
			f, err := disk.ReuseForWrite(names[0], names[1], vfs.WriteCategoryUnspecified)
			if err != nil {
				t.Error(err)
				return
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			names[0], names[1] = names[1], names[0]
		}
	})
	both.Go(func() {
		for range 2000 {
			disk.CrashClone(vfs.CrashCloneCfg{})
		}
	})
	both.Wait()
}

// TestImage checks that a crash keeps synced data and loses the rest.
func TestImage(t *testing.T) {
	disk := enginetest.NewCrashDisk()
	f, err := disk.Create("file", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	root, err := disk.OpenDir("")
	if err != nil {
		t.Fatal(err)
	}
	if err := root.Sync(); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	write("synced")
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	write(" and not")
	info, err := disk.CrashClone(vfs.CrashCloneCfg{}).Stat("file")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := info.Size(), int64(len("synced")); got != want {
		t.Errorf("got %d bytes, want %d", got, want)
	}
}
