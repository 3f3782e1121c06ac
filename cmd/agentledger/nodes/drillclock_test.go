package nodes_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clockVariable names the file with the offset of a node's clock.
const clockVariable = "AGENTLEDGER_DRILL_CLOCK"

// movedSource is added to package clock. It reads the offset, in nanoseconds, from a file that the drill writes.
const movedSource = `package clock

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

var offset = mapOffset()

func mapOffset() *atomic.Int64 {
	file, err := os.Open(os.Getenv("` + clockVariable + `"))
	if err != nil {
		return new(atomic.Int64)
	}
	defer file.Close()
	bytes, err := syscall.Mmap(int(file.Fd()), 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return (*atomic.Int64)(unsafe.Pointer(&bytes[0]))
}

func moved(now time.Time) time.Time {
	if by := offset.Load(); by != 0 {
		return now.Round(0).Add(time.Duration(by))
	}
	return now
}
`

// buildWithClock builds the program with one change: the drill can move the wall clock of the service, which is not
// possible from outside for a static program.
func buildWithClock(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, folder := t.TempDir(), filepath.Join(root, "internal", "clock")
	source, err := os.ReadFile(filepath.Join(folder, "source.go"))
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(source), "Reading{Wall: now,", "Reading{Wall: moved(now),", 1)
	if changed == string(source) {
		t.Fatal("the source of package clock does not match the drill's replacement")
	}
	replaced := map[string]string{}
	for name, text := range map[string]string{"source.go": changed, "moved.go": movedSource} {
		replaced[filepath.Join(folder, name)] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "agentledger")
	build := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-ldflags=-s -w", "-o", program, "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}

// wallClock is the wall clock of one node.
type wallClock struct {
	t    *testing.T
	path string
}

func newWallClock(t *testing.T) wallClock {
	t.Helper()
	c := wallClock{t, filepath.Join(t.TempDir(), "offset")}
	c.move(0)
	return c
}

// move sets how far the clock is ahead of the machine's.
func (c wallClock) move(by time.Duration) {
	c.t.Helper()
	file, err := os.OpenFile(c.path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(by)), 0)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		c.t.Fatal(err)
	}
}
