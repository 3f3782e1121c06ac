package durable_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/agentledger/agentledger/internal/durable"
)

// holds is the environment variable that makes the test program hold a file lock until it is killed or its standard
// input ends.
const holds = "LOCKFILE_TEST_HOLDS"

func TestMain(m *testing.M) {
	if path := os.Getenv(holds); path != "" {
		f, err := durable.AcquireLock(path)
		if err != nil {
			os.Exit(1)
		}
		os.Stdout.WriteString("held\n")
		io.Copy(io.Discard, os.Stdin) // select {} would be reported as a deadlock in a program without C code
		runtime.KeepAlive(f)          // a file that nothing refers to is closed by the garbage collector
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestHold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f, err := durable.AcquireLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := durable.AcquireLock(path); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("a file that is held: got %v", err)
	}
	if _, err := durable.AcquireExistingLock(path); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("a file that is held, opened for reading: got %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err = durable.AcquireExistingLock(path); err != nil {
		t.Fatalf("a file that was let go of, opened for reading: %v", err)
	}
	if _, err := durable.AcquireLock(path); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("a file that is held by a reader: got %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := durable.AcquireExistingLock(path + "-absent"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
	if f, err = durable.AcquireLock(path); err != nil {
		t.Fatalf("a file that was let go of: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := durable.AcquireLock(filepath.Join(path, "below")); err == nil || errors.Is(err, durable.ErrLocked) {
		t.Errorf("below a file: got %v", err)
	}
}

// A lock file that cannot be opened is not reported as locked: the error contains the reason.
func TestNotOpened(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o000); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path string
		why  error
	}{
		"a folder in its place": {filepath.Join(dir, "folder"), syscall.EISDIR},
		"below a file":          {filepath.Join(dir, "file", "lock"), syscall.ENOTDIR},
		"no folder":             {filepath.Join(dir, "absent", "lock"), syscall.ENOENT},
		"no permission":         {filepath.Join(dir, "file"), syscall.EACCES},
	} {
		f, err := durable.AcquireLock(c.path)
		if err == nil && errors.Is(c.why, syscall.EACCES) { // root may open everything
			err = errors.Join(c.why, f.Close())
		}
		if !errors.Is(err, c.why) || errors.Is(err, durable.ErrLocked) {
			t.Errorf("%s: got %v, want %v", name, err, c.why)
		}
	}
}

// A killed process holds no lock.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), holds+"="+path)
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := other.StdoutPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("held\n"))); err != nil {
		t.Fatal(err)
	}
	if _, err := durable.AcquireLock(path); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("while the other one runs: got %v", err)
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait() // it was killed
	f, err := durable.AcquireLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// At most one caller holds a lock whose file is removed with it, even if others have opened the file before its removal.
func TestRemoveLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var held atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for taken := 0; taken < 200; {
				f, err := durable.AcquireTemporaryLock(path)
				if errors.Is(err, durable.ErrLocked) {
					runtime.Gosched()
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				taken++
				if n := held.Add(1); n != 1 {
					t.Errorf("held %d times", n)
				}
				runtime.Gosched()
				held.Add(-1)
				if err := durable.RemoveLock(f); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the last one: got %v, want no file", err)
	}
}
