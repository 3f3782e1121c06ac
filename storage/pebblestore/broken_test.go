package pebblestore_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
)

var errDisk = errors.New("disk: no")

// disk is an in-memory file system whose log syncs can be delayed or fail.
type disk struct {
	*errorfs.FS
	mem  *enginetest.CrashDisk
	fail atomic.Bool
	hold atomic.Pointer[chan struct{}]
}

func newDisk() *disk {
	d := &disk{mem: enginetest.NewCrashDisk()}
	d.FS = errorfs.Wrap(d.mem, errorfs.InjectorFunc(d.maybe))
	return d
}

func (d *disk) maybe(op errorfs.Op) error {
	sync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData
	if !sync || !strings.HasSuffix(op.Path, ".log") {
		return nil
	}
	if hold := d.hold.Load(); hold != nil {
		<-*hold
	}
	if d.fail.Load() {
		return errDisk
	}
	return nil
}

// holdSyncs delays all syncs of the log until release.
func (d *disk) holdSyncs() (release func()) {
	held := make(chan struct{})
	d.hold.Store(&held)
	return func() {
		d.hold.Store(nil)
		close(held)
	}
}

func TestFailedSync(t *testing.T) {
	d := newDisk()
	var causes []error
	e := open(t, pebblestore.Options{Dir: "data", FS: d, OnBroken: func(err error) { causes = append(causes, err) }})
	one, two := newWriter(1), newWriter(2)
	wantAll(t, e.Append([]storage.Batch{one.next(2)}).Wait(), nil)
	durable := one.head

	d.fail.Store(true)
	first, second := e.Append([]storage.Batch{one.next(1)}), e.Append([]storage.Batch{two.next(1)})
	wantAll(t, second.Wait(), storage.ErrBroken)
	wantAll(t, first.Wait(), storage.ErrBroken)
	d.fail.Store(false)

	wantAll(t, e.Append([]storage.Batch{one.next(1), two.next(1)}).Wait(), storage.ErrBroken)
	_, headErr := e.Head(t.Context(), 1)
	_, getErr := e.Get(t.Context(), 1, "kind", "key")
	writeErr := e.Write(t.Context(), 1, []storage.Change{{Kind: "kind", Key: "key", Value: []byte("v")}})
	wantAll(t, []error{headErr, getErr, writeErr, e.Barrier(t.Context()), e.Close()}, storage.ErrBroken)
	wantAll(t, causes, storage.ErrBroken)
	if len(causes) != 1 || !errors.Is(causes[0], errDisk) {
		t.Errorf("OnBroken got %v, want one error with %v", causes, errDisk)
	}

	after := open(t, pebblestore.Options{Dir: "data", FS: d.mem.CrashClone(vfs.CrashCloneCfg{})})
	if got := head(t, after, 1); got != durable {
		t.Errorf("after a restart: got head %+v, want %+v", got, durable)
	}
	if err := after.Close(); err != nil {
		t.Error(err)
	}
}

func wantAll(t *testing.T, got []error, want error) {
	t.Helper()
	for i, err := range got {
		if !errors.Is(err, want) {
			t.Errorf("answer %d: got %v, want %v", i, err, want)
		}
	}
}

// TestReadersLeaveAHeldSync: reads of data that is being synced end with their contexts, and return the data once it is
// durable.
func TestReadersLeaveAHeldSync(t *testing.T) {
	d := newDisk()
	e := open(t, pebblestore.Options{Dir: "data", FS: d})
	w := newWriter(1)
	wantAll(t, e.Append([]storage.Batch{w.next(1)}).Wait(), nil)
	release := d.holdSyncs()
	b := w.next(1)
	b.Changes = []storage.Change{{Kind: "kind", Key: "key", Value: []byte("v")}}
	pending := e.Append([]storage.Batch{b})
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_, getErr := e.Get(ctx, 1, "kind", "key")
		_, scanErr := e.Scan(ctx, 1, "kind", "", "", 9)
		cancel()
		wantAll(t, []error{getErr, scanErr}, context.DeadlineExceeded)
	}
	release()
	r, err := e.Get(t.Context(), 1, "kind", "key")
	if err != nil || string(r.Value) != "v" {
		t.Errorf("got %q, %v", r.Value, err)
	}
	wantAll(t, append(pending.Wait(), e.Close()), nil)
}

// TestUnsynced delays a sync. Ledger reads show the append; record reads and rejections wait for it. Commits overlap,
// so Append itself does not wait.
func TestUnsynced(t *testing.T) {
	d := newDisk()
	e := open(t, pebblestore.Options{Dir: "data", FS: d})
	w := newWriter(1)
	wantAll(t, e.Append([]storage.Batch{w.next(1)}).Wait(), nil)

	release := d.holdSyncs()
	b := w.next(1)
	b.Changes = []storage.Change{{Kind: "kind", Key: "key", Value: []byte("v")}}
	pending := e.Append([]storage.Batch{b})
	if got := head(t, e, 1); got != w.head {
		t.Errorf("while it syncs: got head %+v, want %+v", got, w.head)
	}
	_, err := e.Get(t.Context(), 1, "kind", "other")
	wantAll(t, []error{err}, storage.ErrNotFound)
	_, err = e.Get(t.Context(), 2, "kind", "key")
	wantAll(t, []error{err}, storage.ErrNotFound)

	again := w.next(1)
	again.Events[0].ID = b.Events[0].ID
	stale := []storage.Change{{Kind: "kind", Key: "key", Value: []byte("w")}}
	var released atomic.Bool
	calls := map[string]func() bool{
		"get": func() bool {
			r, err := e.Get(t.Context(), 1, "kind", "key")
			return err == nil && string(r.Value) == "v"
		},
		"scan":      func() bool { r, err := e.Scan(t.Context(), 1, "kind", "", "", 9); return err == nil && len(r) == 1 },
		"write":     func() bool { return errors.Is(e.Write(t.Context(), 1, stale), storage.ErrStale) },
		"duplicate": func() bool { return errors.Is(e.Append([]storage.Batch{again}).Wait()[0], storage.ErrDuplicate) },
		"barrier":   func() bool { return e.Barrier(t.Context()) == nil },
	}
	done := make(chan string, len(calls))
	var begun sync.WaitGroup
	begun.Add(len(calls))
	for name, call := range calls {
		go func() {
			begun.Done()
			if !call() {
				name += ": wrong answer"
			}
			if !released.Load() {
				name += ": did not wait"
			}
			done <- name
		}()
	}
	begun.Wait()
	for range 1000 {
		runtime.Gosched() // gives code that wrongly does not wait the time to run
	}
	released.Store(true)
	release()
	for range calls {
		if name := <-done; strings.Contains(name, ":") {
			t.Error(name)
		}
	}
	wantAll(t, pending.Wait(), nil)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// fillLog appends until the log has several 32 KiB blocks, all synced, and returns the log's name.
func fillLog(t *testing.T, dir string) string {
	t.Helper()
	e := open(t, pebblestore.Options{Dir: dir})
	w := newWriter(1)
	for range 20 {
		wantAll(t, e.Append([]storage.Batch{w.next(4)}).Wait(), nil)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("got logs %v, %v, want one", logs, err)
	}
	return logs[0]
}

// TestDamagedLog is the reason why the format is the newest one, from the first log on: damage before the end of the
// log is found and not mistaken for its end.
func TestDamagedLog(t *testing.T) {
	const block = 32 << 10
	for name, at := range map[string]int64{"first block": 5000, "later block": 3*block + 5000, "first bytes": 3} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			flip(t, fillLog(t, dir), at)
			e, err := pebblestore.Open(pebblestore.Options{Dir: dir})
			if !errors.Is(err, storage.ErrCorrupt) {
				t.Errorf("open: got %v, want %v", err, storage.ErrCorrupt)
			}
			if err == nil {
				e.Close()
			}
		})
	}
}

func flip(t *testing.T, file string, at int64) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[at] ^= 0x40
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLocked(t *testing.T) {
	dir := t.TempDir()
	e := open(t, pebblestore.Options{Dir: dir})
	if second, err := pebblestore.Open(pebblestore.Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), dir+" is in use") {
		t.Errorf("second open here: got %v, %v, want an error", second, err)
	}
	out := runChild(t, dir, "")
	if !strings.Contains(out, dir+" is in use") {
		t.Errorf("second open in another process: got %q, want an error", out)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if out := runChild(t, dir, ""); !strings.Contains(out, "appended") {
		t.Errorf("after close: got %q, want success", out)
	}
}

// TestLogNotMade makes Pebble fail to create a new log file: Pebble then ends the process, and OnBroken has been called
// before.
func TestLogNotMade(t *testing.T) {
	out := runChild(t, t.TempDir(), "fail")
	if !strings.Contains(out, "storage: broken: disk: no") || strings.Contains(out, "appended") {
		t.Errorf("got %q, want the call of OnBroken and no success", out)
	}
}

// runChild runs TestChild in another process.
func runChild(t *testing.T, dir, mode string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), "PEBBLESTORE_DIR="+dir, "PEBBLESTORE_MODE="+mode)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // the output has the result
	return out.String()
}

// TestChild is the other process. On its own it does nothing.
func TestChild(t *testing.T) {
	dir := os.Getenv("PEBBLESTORE_DIR")
	if dir == "" {
		return
	}
	var fail atomic.Bool
	fs := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if fail.Load() && (op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpReuseForWrite) && strings.HasSuffix(op.Path, ".log") {
			return errDisk
		}
		return nil
	}))
	e, err := pebblestore.Open(pebblestore.Options{Dir: dir, FS: fs, OnBroken: func(err error) { t.Log("broken:", err); os.Stdout.WriteString("broken: " + err.Error() + "\n") }})
	if err != nil {
		t.Fatal(err)
	}
	fail.Store(os.Getenv("PEBBLESTORE_MODE") == "fail")
	w := newWriter(id.Tenant(os.Getpid()))
	for range 20 {
		for _, err := range e.Append([]storage.Batch{w.next(50)}).Wait() {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Log("appended")
	os.Stdout.WriteString("appended\n")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFailingFlush: Pebble retries a failing flush indefinitely, also while it opens, which would then never end.
func TestFailingFlush(t *testing.T) {
	mem := vfs.NewMem()
	e := open(t, pebblestore.Options{Dir: "data", FS: mem})
	wantAll(t, e.Append([]storage.Batch{newWriter(1).next(1)}).Wait(), nil)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	full := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") {
			return errDisk
		}
		return nil
	}))
	broken := make(chan error)
	end := func(err error) {
		broken <- err
		select {} // as if the process ended here
	}
	go pebblestore.Open(pebblestore.Options{Dir: "data", FS: full, CacheBytes: 8 << 20, OnBroken: end})
	if err := <-broken; !errors.Is(err, storage.ErrBroken) || !errors.Is(err, errDisk) {
		t.Errorf("told %v, want %v for %v", err, storage.ErrBroken, errDisk)
	}
}

// A flush that fails while the store is open is retried, but neither keeps a processor busy nor fills the log. When
// files can be created again, it continues.
func TestFailingFlushIsPaced(t *testing.T) {
	var failing atomic.Bool
	var tries atomic.Int64
	full := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing.Load() && op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") {
			tries.Add(1)
			return errDisk
		}
		return nil
	}))
	var lines lockedLines
	e := open(t, pebblestore.Options{Dir: "data", FS: full, Logger: slog.New(slog.NewTextHandler(&lines, nil))})
	defer e.Close()
	w := newWriter(1)
	wantAll(t, e.Append([]storage.Batch{w.next(1)}).Wait(), nil)
	failing.Store(true)
	began := time.Now()
	flushed := make(chan error, 1)
	go func() { flushed <- e.Flush() }()
	for tries.Load() < 5 {
		time.Sleep(time.Millisecond)
	}
	if most := int64(time.Since(began)/(100*time.Millisecond)) + 2; tries.Load() > most {
		t.Errorf("got %d tries, want at most %d", tries.Load(), most)
	}
	wantAll(t, e.Append([]storage.Batch{w.next(1)}).Wait(), nil)
	failing.Store(false)
	if err := <-flushed; err != nil {
		t.Error(err)
	}
	if got := lines.n.Load(); got < 1 || got > 6 {
		t.Errorf("got %d lines in the log, want a few", got)
	}
}

type lockedLines struct{ n atomic.Int64 }

func (l *lockedLines) Write(p []byte) (int, error) {
	l.n.Add(1)
	return len(p), nil
}
