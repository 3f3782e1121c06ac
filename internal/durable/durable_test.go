package durable_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/internal/durable"
)

// makeOf creates a folder or, if there is content, a file with exactly the given mode.
func makeOf(t *testing.T, path string, mode fs.FileMode, dir bool) string {
	t.Helper()
	var err error
	if dir {
		err = os.Mkdir(path, 0o700)
	} else {
		err = os.WriteFile(path, []byte("x"), 0o600)
	}
	if err == nil {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func modes(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	got := map[string]fs.FileMode{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		got[path[len(dir):]] = info.Mode().Perm()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestTightenDir(t *testing.T) {
	outside := makeOf(t, filepath.Join(t.TempDir(), "outside"), 0o644, false)
	dir := makeOf(t, filepath.Join(t.TempDir(), "db"), 0o777, true)
	makeOf(t, dir+"/open", 0o666, false)
	makeOf(t, dir+"/group", 0o640, false)
	makeOf(t, dir+"/program", 0o755, false)
	makeOf(t, dir+"/less", 0o400, false)
	makeOf(t, dir+"/inner", 0o755, true)
	makeOf(t, dir+"/inner/file", 0o644, false)
	if err := os.Symlink(outside, dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := durable.TightenDir(dir); err != nil {
			t.Fatal(err)
		}
		got := modes(t, dir)
		delete(got, "/link")
		want := map[string]fs.FileMode{"": 0o700, "/open": 0o600, "/group": 0o600, "/program": 0o600, "/less": 0o400, "/inner": 0o700, "/inner/file": 0o600}
		if !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("behind a link: got %v, %v", info, err)
	}
	link := filepath.Join(t.TempDir(), "data")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	makeOf(t, dir+"/later", 0o644, false)
	if err := durable.TightenDir(link); err != nil || modes(t, dir)[""] != 0o700 || modes(t, dir)["/later"] != 0o600 {
		t.Errorf("a folder that is a link: got %v, %v", modes(t, dir), err)
	}
	if err := durable.TightenDir(dir + "-absent"); err != nil {
		t.Errorf("no folder: %v", err)
	}
}

func TestTightenFile(t *testing.T) {
	file := makeOf(t, filepath.Join(t.TempDir(), "f"), 0o664, false)
	if err := durable.TightenFile(file); err != nil || modes(t, file)[""] != 0o600 {
		t.Errorf("got %v, %v", modes(t, file), err)
	}
	if err := durable.TightenFile(file + "-absent"); err != nil {
		t.Error(err)
	}
}

// A replaced file has only the new content, is private, and leaves no other file. A file that cannot be replaced is
// unchanged.
func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, content := range []string{"first", "second, longer", "3"} {
		if err := durable.ReplaceFile(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || string(got) != content || info.Mode().Perm() != durable.FileMode {
			t.Errorf("got %q, %v, %v, %v", got, err, info, statErr)
		}
	}
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, durable.DirMode); err != nil {
		t.Fatal(err)
	}
	if err := durable.ReplaceFile(folder, []byte("x")); err == nil {
		t.Error("a folder was replaced")
	}
	if err := durable.ReplaceFile(filepath.Join(dir, "absent", "file"), nil); err == nil {
		t.Error("a file was made in no folder")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("got %v, %v, want the file and the folder", left, err)
	}
}

func TestCreateFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := durable.CreateFile(path, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := durable.CreateFile(path, []byte("second")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("made a second time: got %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "first" {
		t.Errorf("got %q, %v", got, err)
	}
}

// steps is a file system that records its calls and fails at one of them.
type steps struct {
	taken []string
	fails string
}

func (s *steps) take(step string) error {
	s.taken = append(s.taken, step)
	if step == s.fails {
		return errors.New(step)
	}
	return nil
}

func (s *steps) Rename(from, to string) error { return s.take("rename " + from + " " + to) }

func (s *steps) OpenDir(name string) (step, error) { return step{s, name}, s.take("open " + name) }

type step struct {
	*steps
	name string
}

func (s step) Sync() error  { return s.take("sync " + s.name) }
func (s step) Close() error { return s.take("close " + s.name) }

// Commit takes its steps in an order in which a crash at any of them leaves a complete file, and reports each failed
// step.
func TestCommitOrder(t *testing.T) {
	want := []string{"sync new", "close new", "rename new dir/file", "open dir", "sync dir", "close dir"}
	for i := -1; i < len(want); i++ {
		s := &steps{}
		if i >= 0 {
			s.fails = want[i]
		}
		err := durable.Commit(s, step{s, "new"}, "new", "dir/file")
		if (err != nil) != (i >= 0) {
			t.Errorf("%s fails: got %v", s.fails, err)
		}
		if n := len(s.taken); !slices.Equal(s.taken, want[:n]) || i < 0 && n != len(want) || i < 2 && i >= 0 && n != 2 {
			t.Errorf("%s fails: got %v", s.fails, s.taken)
		}
	}
}
