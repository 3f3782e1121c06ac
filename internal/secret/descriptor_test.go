//go:build unix

package secret

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"
)

// A secret in an inherited descriptor is read once, and the descriptor is closed after it.
func TestReadDescriptor(t *testing.T) {
	for name, read := range map[string]func(string) (string, error){
		"secret": ReadLine,
		"settings": func(path string) (string, error) {
			text, err := ReadSettings(path)
			return TrimLineEnd(string(text)), err
		},
	} {
		from, to, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		fd, err := syscall.Dup(int(from.Fd())) // inherited descriptors belong to no *os.File
		if err != nil {
			t.Fatal(err)
		}
		from.Close()
		fmt.Fprintln(to, "the-secret")
		to.Close()
		if got, err := read(fmt.Sprintf("/dev/fd/%d", fd)); err != nil || got != "the-secret" {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
		if err := syscall.Fstat(fd, &syscall.Stat_t{}); err != syscall.EBADF {
			t.Errorf("%s: the descriptor is open: %v", name, err)
		}
	}
	if _, err := ReadLine("/dev/fd/9999"); err == nil || err == fs.ErrNotExist {
		t.Errorf("a descriptor that is not open: %v", err)
	}
}
