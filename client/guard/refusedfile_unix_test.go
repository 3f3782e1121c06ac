//go:build unix

package guard

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A line that does not fit on the disk leaves nothing in the file, so the next line is not appended to a part of it.
func TestAppendDurablyToFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "refused.ndjson")
	if err := appendDurably(path, []byte("first\n")); err != nil {
		t.Fatal(err)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	small := limit
	small.Cur = 1 << 10
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		t.Fatal(err)
	}
	failed := appendDurably(path, []byte(strings.Repeat("x", 2<<10)+"\n"))
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if failed == nil {
		t.Fatal("appended more than fits")
	}
	if err := appendDurably(path, []byte("second\n")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "first\nsecond\n" {
		t.Errorf("got %.40q, %v", got, err)
	}
}
