package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// openUmask lets this process and its children create files of any mode.
func openUmask(t *testing.T) {
	t.Helper()
	before := syscall.Umask(0)
	t.Cleanup(func() { syscall.Umask(before) })
}

// wantPrivate checks that other users have no access to a folder and its content.
func wantPrivate(t *testing.T, when, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; info.Mode().Perm() != want {
			t.Errorf("%s: %s has mode %v, want %v", when, path, info.Mode(), want)
		}
		files++
		return nil
	})
	if err != nil || files < 3 {
		t.Errorf("%s: %d files, %v", when, files, err)
	}
}

// loosen gives all users all rights to the content of a folder.
func loosen(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, map[bool]fs.FileMode{true: 0o777, false: 0o666}[d.IsDir()])
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The program's files belong only to its user, whatever the umask is. A start that writes restricts files that were
// open to other users; other starts do not.
func TestFilesArePrivate(t *testing.T) {
	openUmask(t)
	data := filepath.Join(t.TempDir(), "data")
	db, anchors := filepath.Join(data, "db"), filepath.Join(data, "anchors")
	serve := func(slug string) {
		p := startProcess(t, data)
		p.found(t.Context(), slug, nil)
		p.signal(syscall.SIGTERM)
		if err := p.wait(); err != nil {
			t.Fatalf("%v\n%s", err, p.logs)
		}
	}
	serve("red")
	wantPrivate(t, "a new data directory", data)

	loosen(t, db)
	loosen(t, anchors)
	serve("blue")
	wantPrivate(t, "after a start", data)

	export := filepath.Join(t.TempDir(), "export")
	if out, exit := command(t, "agentledger", "export", "--data", data, "--to", export); exit != 0 {
		t.Fatalf("exit %d\n%s", exit, out)
	}
	wantPrivate(t, "an export", export)

	loosen(t, db)
	p := startProcess(t, data, "--read-only")
	if info, err := os.Stat(db); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("read-only: got %v, %v, want it as it was", info.Mode(), err)
	}
	p.signal(syscall.SIGTERM)
	p.wait()
	if out, exit := command(t, "agentledger", "fsck", "--data", data); exit != 0 {
		t.Errorf("fsck: exit %d\n%s", exit, out)
	}
}
