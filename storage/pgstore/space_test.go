package pgstore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// full is a way to run out of space.
type full struct {
	volume uint64                     // bytes of a volume that holds the files
	files  uint64                     // longest file that the server may write, where there can be no such volume
	layout func(string) pgtest.Layout // with a folder on the volume
}

// A server that runs out of space for its tables rejects what it cannot store; a server that runs out of space for its
// log crashes repeatedly until there is space. Nothing acknowledged is lost, no log forks, callers are told to retry,
// and when there is space, the service continues automatically.
//
// The space is a small file system (ENOSPC) if this process may mount one. Otherwise, without root, the length of files
// is limited: EFBIG, which the server gets in the same places.
func TestFullDisk(t *testing.T) {
	tests := map[string]full{
		"tables": {96 << 20, 17 << 20, func(dir string) pgtest.Layout { return pgtest.Layout{Data: dir, OfThread: true} }},
		"log":    {40 << 20, 8 << 20, func(dir string) pgtest.Layout { return pgtest.Layout{Log: dir, OfThread: true} }},
	}
	for name, f := range tests {
		t.Run(name, func(t *testing.T) { f.test(t) })
		t.Run(name+", by the length of files", func(t *testing.T) { full{files: f.files}.test(t) })
	}
}

func (f full) test(t *testing.T) {
	s, fill, empty := f.start(t)
	e := open(t, pgstore.Options{URL: s.URL()})
	w := newWorld(t, e)
	w.found()
	w.weight = 100 << 10
	w.mustAppend(red, "before")
	w.mustAppend(blue, "before")
	must(t, fill())
	full := make(chan struct{})
	refused := w.refusals(full, 6)
	acknowledgements := w.traffic(full)
	for _, err := range refused() {
		if kind := fault.Of(err).Kind; kind != fault.Unavailable && kind != fault.Overloaded && kind != fault.OutcomeUnknown {
			t.Errorf("got %v, want a refusal that says to come back", err)
		}
	}
	t.Logf("%d and %d events acknowledged", len(acknowledgements.acknowledged[red]), len(acknowledgements.acknowledged[blue]))
	must(t, empty())
	must(t, s.Recover())
	w.retry("after")
	w.keeps(acknowledgements)
	after := open(t, pgstore.Options{URL: s.URL()})
	w.reopen(after)
	w.keeps(acknowledgements)
	w.close()
	closeEngine(t, e)
	closeEngine(t, after)
}

// start runs a server; fill leaves it little space and empty frees it.
func (f full) start(t *testing.T) (s *pgtest.Server, fill, empty func() error) {
	t.Helper()
	dir, err := "", errors.New("not wanted")
	if f.volume > 0 {
		dir, err = smallVolume(t, f.volume)
	}
	if err != nil {
		t.Logf("the length of files is bounded: %v", err)
		s := start(t)
		return s, func() error { return s.LimitFiles(f.files) }, func() error { return s.LimitFiles(0) }
	}
	s, err = pgtest.StartIn(f.layout(filepath.Join(dir, "files")), "autovacuum=off")
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) }) // before the volume goes
	filler := filepath.Join(dir, "filler")
	return s, func() error { return occupy(dir, filler, 4<<20) }, func() error { return os.Remove(filler) }
}

// smallVolume mounts an in-memory file system that only this thread and its children see, and that is unmounted with
// them.
func smallVolume(t *testing.T, bytes uint64) (dir string, err error) {
	t.Helper()
	made, err := os.MkdirTemp("", "small") // the server's user has no way into the test's own folder
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, os.Remove(made)) })
	runtime.LockOSThread() // permanently: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return "", fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return "", fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("small", made, "tmpfs", 0, fmt.Sprintf("size=%d,mode=755", bytes)); err != nil {
		return "", fmt.Errorf("mount: %w", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(made, unix.MNT_DETACH)) })
	return made, nil
}

// occupy writes a file that leaves rest bytes free on a volume.
func occupy(dir, path string, rest uint64) error {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return fmt.Errorf("statfs: %w", err)
	}
	free := s.Bavail * uint64(s.Bsize)
	return os.WriteFile(path, make([]byte, free-min(free, rest)), 0o600)
}

// refusals appends events until n were rejected, and then closes full. It returns a function that returns the errors.
func (w *world) refusals(full chan<- struct{}, n int) (errs func() []error) {
	var refused []error
	var done sync.WaitGroup
	done.Go(func() {
		defer close(full)
		for i, end := 0, time.Now().Add(2*time.Minute); len(refused) < n; i++ {
			if err := w.append(red, fmt.Sprint("fills-", i)); err != nil {
				refused = append(refused, err)
			}
			if time.Now().After(end) {
				w.t.Error("the disk does not fill up")
				return
			}
		}
	})
	return func() []error { done.Wait(); return refused }
}
