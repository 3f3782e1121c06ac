package linelog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// disk is the real file system with one failing call.
type disk struct {
	mu    sync.Mutex
	calls []string
	fails int // number of the call that fails, counted from 1; 0 for none
}

var errDisk = errors.New("disk")

func (d *disk) step(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, name)
	if len(d.calls) == d.fails {
		return errDisk
	}
	return nil
}

func (d *disk) Create(path string) (File, error) {
	if err := d.step("create"); err != nil {
		return nil, err
	}
	f, err := SystemFiles{}.Create(path)
	return diskFile{f, d}, err
}

func (d *disk) Open(path string) (File, error) {
	f, err := SystemFiles{}.Open(path)
	return diskFile{f, d}, err
}

func (d *disk) Remove(path string) error {
	if err := d.step("remove"); err != nil {
		return err
	}
	return SystemFiles{}.Remove(path)
}

type diskFile struct {
	File
	disk *disk
}

func (f diskFile) WriteAt(b []byte, at int64) (int, error) {
	if err := f.disk.step("write"); err != nil { // the disk is full after half of it
		n, _ := f.File.WriteAt(b[:len(b)/2], at)
		return n, err
	}
	return f.File.WriteAt(b, at)
}

func (f diskFile) Sync() error {
	if err := f.disk.step("sync"); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f diskFile) Truncate(size int64) error {
	if err := f.disk.step("truncate"); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

// open opens a folder and returns its lines.
func open(t *testing.T, fs Files, dir string, segmentBytes int64) (*Log, []string, error) {
	t.Helper()
	var lines []string
	l, err := Open(fs, dir, segmentBytes, func(text []byte, at Place) error {
		lines = append(lines, string(text))
		return nil
	})
	if err == nil {
		t.Cleanup(func() { l.Close() })
	}
	return l, lines, err
}

func mustOpen(t *testing.T, dir string, segmentBytes int64) (*Log, []string) {
	t.Helper()
	l, lines, err := open(t, SystemFiles{}, dir, segmentBytes)
	if err != nil {
		t.Fatal(err)
	}
	return l, lines
}

func line(n int) string { return fmt.Sprintf(`{"n":%d,"text":%q}`, n, strings.Repeat("x", n%7)) }

// fill writes n lines, two per sync, and returns them with the folder.
func fill(t *testing.T, n int) (dir string, lines []string) {
	t.Helper()
	dir = t.TempDir()
	l, _ := mustOpen(t, dir, 0)
	for i := range n {
		lines = append(lines, line(i))
		e := l.Append([]byte(line(i)))
		if i%2 == 0 {
			continue
		}
		if _, err := e.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, lines
}

const firstFile = "0000000001.lines"

// newFolder makes a folder with one file of lines.
func newFolder(t *testing.T, content []byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, firstFile), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func readFirst(t *testing.T, dir string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, firstFile))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A file that is cut at any byte keeps the complete lines before the cut, and accepts further ones.
func TestCutAtEveryByte(t *testing.T) {
	dir, want := fill(t, 7)
	whole := readFirst(t, dir)
	for cut := range whole {
		expected := strings.Count(string(whole[:cut]), "}\n")
		dir := newFolder(t, whole[:cut])
		l, got := mustOpen(t, dir, 0)
		if !slices.Equal(got, want[:expected]) {
			t.Fatalf("cut at %d: got %q, want %d lines", cut, got, expected)
		}
		if _, err := l.Append([]byte(`{"more":1}`)).Wait(); err != nil {
			t.Fatal(err)
		}
		l.Close()
		if _, again := mustOpen(t, dir, 0); !slices.Equal(again, append(got, `{"more":1}`)) {
			t.Fatalf("cut at %d, after another line: got %q", cut, again)
		}
	}
}

// A flipped bit is detected wherever it is, and nothing is cut off. Any other change of a byte is detected too, unless it
// is a zero at the beginning or the end of a line of the last group, as a crash leaves them: then the lines from there
// on are cut off.
func TestDamageAtEveryByte(t *testing.T) {
	dir, want := fill(t, 6)
	whole := readFirst(t, dir)
	for i := range whole {
		for _, change := range []byte{1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 5, 1 << 6, 1 << 7, 0xff, whole[i]} { // the last change makes it zero
			damaged := bytes.Clone(whole)
			damaged[i] ^= change
			dir := newFolder(t, damaged)
			_, got, err := open(t, SystemFiles{}, dir, 0)
			if IsDamaged(err) {
				if !strings.Contains(err.Error(), filepath.Join(dir, firstFile)) {
					t.Fatalf("byte %d: the error does not name the file: %v", i, err)
				}
				if !bytes.Equal(readFirst(t, dir), damaged) {
					t.Fatalf("byte %d: the damaged file was changed", i)
				}
				continue
			}
			lastGroup := bytes.LastIndex(whole, []byte(markPrefix)) - checksumDigits - 1
			crash := change == whole[i] && i >= lastGroup && (whole[i-1] == '\n' || i == len(whole)-1)
			if err != nil || !crash || len(got) >= len(want) || !slices.Equal(got, want[:len(got)]) {
				t.Fatalf("byte %d changed by %x: got %q, %v", i, change, got, err)
			}
		}
	}
}

// A crash leaves pages of zeros in place of bytes that were not synced. Before a mark they are damage.
func TestZerosOfACrash(t *testing.T) {
	dir, want := fill(t, 6)
	whole := readFirst(t, dir)
	second := bytes.Index(whole, []byte(want[2])) // its group is synced, as the mark of the third one says
	third := bytes.Index(whole, []byte(want[4]))
	for name, c := range map[string]struct {
		at   int
		want int // lines, -1 for damage
	}{
		"of the last group":   {third, 4},
		"of a synced group":   {second, -1},
		"of the first group":  {20, -1},
		"of the last mark":    {third - 20, 4},
		"of the last newline": {len(whole) - 1, 5},
	} {
		damaged := bytes.Clone(whole)
		clear(damaged[c.at:min(c.at+8, len(damaged))])
		_, got, err := open(t, SystemFiles{}, newFolder(t, damaged), 0)
		if c.want < 0 && !IsDamaged(err) || c.want >= 0 && (err != nil || !slices.Equal(got, want[:c.want])) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

// Whichever file system call fails, lines whose Wait returned nil can be read, and after reopening they are there in
// order. The log continues after a failed write, but not after a failed sync.
func TestFailureAtEveryCall(t *testing.T) {
	for fails := 1; ; fails++ {
		d, dir := &disk{fails: fails}, t.TempDir()
		l, _, err := open(t, d, dir, 150)
		if err != nil {
			t.Fatal(err)
		}
		var written []string
		failures, first := 0, 0
		for i := range 12 {
			at, err := l.Append([]byte(line(i))).Wait()
			if err != nil {
				if failures++; failures == 1 {
					first = i
				}
				continue
			}
			written = append(written, line(i))
			if text, _, err := l.Read(at); err != nil || string(text) != line(i) {
				t.Errorf("call %d: read: got %q, %v", fails, text, err)
			}
		}
		if len(d.calls) < fails {
			if failures > 0 || fails < 20 {
				t.Errorf("without a failure: %d lines failed, %d calls", failures, fails)
			}
			return
		}
		failed := d.calls[fails-1]
		want := 1
		if failed == "sync" {
			want = 12 - first
		}
		if failures != want {
			t.Errorf("call %d, a %s: %d lines failed, want %d", fails, failed, failures, want)
		}
		l.Close()
		_, got := mustOpen(t, dir, 150)
		got = slices.DeleteFunc(got, func(s string) bool { return !slices.Contains(written, s) })
		if !slices.Equal(got, written) {
			t.Errorf("call %d, a %s: got %q, want %q", fails, failed, got, written)
		}
	}
}

// A failed write that can't be undone ends the log, because the next line would follow half of one.
func TestNothingFollowsHalfALine(t *testing.T) {
	d := &disk{fails: 2} // after the creation
	l, _, err := open(t, d, t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	l.files = d
	failing := &failingTruncate{d}
	l.files = failing
	for i := range 3 {
		if _, err := l.Append([]byte(line(i))).Wait(); !errors.Is(err, errDisk) {
			t.Errorf("line %d: got %v", i, err)
		}
	}
}

// failingTruncate is a disk that can't truncate files.
type failingTruncate struct{ *disk }

func (d *failingTruncate) Create(path string) (File, error) {
	f, err := d.disk.Create(path)
	return uncuttable{f}, err
}

type uncuttable struct{ File }

func (uncuttable) Truncate(int64) error { return errDisk }

// Concurrent callers share syncs, and no line is lost.
func TestManyAtOnce(t *testing.T) {
	d, dir := &disk{}, t.TempDir()
	l, _, err := open(t, d, dir, 2000)
	if err != nil {
		t.Fatal(err)
	}
	// The first caller holds the turn until all others have appended.
	l.turn <- struct{}{}
	const callers = 64
	var group sync.WaitGroup
	for i := range callers {
		e := l.Append([]byte(line(i)))
		group.Go(func() {
			if _, err := e.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	<-l.turn
	group.Wait()
	syncs := 0
	for _, call := range d.calls {
		if call == "sync" {
			syncs++
		}
	}
	l.Close()
	if _, got := mustOpen(t, dir, 0); len(got) != callers || syncs != 1 {
		t.Errorf("got %d lines with %d syncs, want %d with one", len(got), syncs, callers)
	}
}

// Files are removed from the oldest on, and never the one being written.
func TestRemoveOldest(t *testing.T) {
	dir := t.TempDir()
	l, _ := mustOpen(t, dir, 100)
	var places []Place
	for i := range 9 {
		at, err := l.Append([]byte(line(i))).Wait()
		if err != nil {
			t.Fatal(err)
		}
		at.Keep()
		places = append(places, at)
	}
	before := l.Usage()
	places[0].Drop()
	if u := l.Usage(); u.Files < 3 || u.OldestLive != before.OldestLive-int64(len(line(0))) || u.Live >= u.Bytes {
		t.Errorf("got %+v, before %+v", u, before)
	}
	var oldest []string
	if err := l.ReadOldest(func(text []byte, at Place) error {
		oldest = append(oldest, string(text))
		return nil
	}); err != nil || len(oldest) == 0 || oldest[0] != line(0) {
		t.Errorf("oldest: got %q, %v", oldest, err)
	}
	for range before.Files + 2 {
		if err := l.RemoveOldest(); err != nil {
			t.Fatal(err)
		}
	}
	if _, there, err := l.Read(places[0]); there || err != nil {
		t.Errorf("removed: got %v, %v", there, err)
	}
	last := len(places) - 1
	if text, _, err := l.Read(places[last]); err != nil || string(text) != line(last) {
		t.Errorf("newest: got %q, %v", text, err)
	}
	l.Close()
	if _, got := mustOpen(t, dir, 100); len(got) == 0 || got[len(got)-1] != line(last) || l.Usage().Files != 1 {
		t.Errorf("opened again: got %q", got)
	}
}

// Lines that nobody waits for are written with the next ones or by Close.
func TestCloseWrites(t *testing.T) {
	dir := t.TempDir()
	l, _ := mustOpen(t, dir, 0)
	l.Append([]byte(line(1)))
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 || l.Gathered() == 0 {
		t.Errorf("written at once: %v, %v", files, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, got := mustOpen(t, dir, 0); !slices.Equal(got, []string{line(1)}) {
		t.Errorf("got %q", got)
	}
}

// An older file that ends early is damaged: the process continued after it was synced.
func TestOlderFilesAreWhole(t *testing.T) {
	dir, _ := fill(t, 4)
	if err := os.WriteFile(filepath.Join(dir, "0000000002.lines"), appendFrame(nil, []byte(line(9))), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, got := mustOpen(t, dir, 0); len(got) != 5 {
		t.Errorf("got %q", got)
	}
	if err := os.Truncate(filepath.Join(dir, firstFile), int64(len(readFirst(t, dir))-1)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := open(t, SystemFiles{}, dir, 0); err == nil {
		t.Error("got no error")
	}
}
