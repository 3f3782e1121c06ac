package durable_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentledger/agentledger/internal/durable"
)

// makeOf makes a folder or, with content, a file of exactly that mode.
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
