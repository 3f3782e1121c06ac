package objects_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive/objects"
	"github.com/agentledger/agentledger/storage/archive/objects/objectstest"
)

func openFolder(t *testing.T, dir string) objects.Store {
	t.Helper()
	s, err := objects.Open(t.Context(), "file://"+dir, objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "archive")
	objectstest.Run(t, func(t *testing.T) objects.Store { return openFolder(t, dir) })
}

// Files are private, and no partial file is left.
func TestFolderFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "archive")
	s := openFolder(t, dir)
	if err := s.Create(t.Context(), "red/1", []byte("x")); err != nil {
		t.Fatal(err)
	}
	got := map[string]fs.FileMode{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		got[path[len(dir):]] = info.Mode().Perm()
		return err
	})
	want := map[string]fs.FileMode{"": 0o700, "/.lock": 0o600, "/.partial": 0o700, "/red": 0o700, "/red/1": 0o600}
	if err != nil || len(got) != len(want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for name, mode := range want {
		if got[name] != mode {
			t.Errorf("%s: got %v, want %v", name, got[name], mode)
		}
	}
}

// A store that is only read changes nothing, whether or not the folder exists.
func TestFolderIsOnlyRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "archive")
	read := func(want error) {
		s, err := objects.New("file://"+dir, objects.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = s.Read(t.Context(), "red/1", 10)
		objectstest.Want(t, "read", err, want)
	}
	read(objects.ErrNotFound)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
	s := openFolder(t, dir)
	objectstest.Want(t, "create", s.Create(t.Context(), "red/1", []byte("x")), nil)
	part := filepath.Join(dir, ".partial", "1.new") // of a write that may be running in another process
	if err := os.WriteFile(part, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	read(nil)
	if _, err := os.Stat(part); err != nil {
		t.Errorf("a reader removed a part: %v", err)
	}
}

// A partial file left by a crash is not an object, and the first write of the next process removes it.
func TestFolderAfterACrash(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "archive")
	s := openFolder(t, dir)
	part := filepath.Join(dir, ".partial", "1.new")
	if err := os.WriteFile(part, []byte("half of an obj"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), "red/1", []byte("whole")); err != nil {
		t.Fatal(err)
	}
	s = openFolder(t, dir)
	if _, err := os.Stat(part); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the part is there: %v", err)
	}
	objectstest.WantContent(t, s, "red/1", []byte("whole"))
}

// A write waits for a process that holds the lock of the folder, until its context ends. Reads continue.
func TestFolderHeld(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "archive")
	s := openFolder(t, dir)
	if err := s.Create(t.Context(), "red/1", []byte("x")); err != nil {
		t.Fatal(err)
	}
	held, err := durable.AcquireLock(filepath.Join(dir, ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	objectstest.Want(t, "held", s.Create(short, "red/2", nil), storage.ErrUnavailable)
	objectstest.WantContent(t, s, "red/1", []byte("x"))
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	objectstest.Want(t, "let go", s.Create(t.Context(), "red/2", nil), nil)
}

// If something else is in the place of an object's file, other objects still work.
func TestFolderFaults(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "archive")
	s := openFolder(t, dir)
	objectstest.Want(t, "create", s.Create(t.Context(), "red/1", []byte("red")), nil)
	for _, folder := range []string{"blue", "blue/1"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := s.Read(t.Context(), "blue/1", 10)
	objectstest.Want(t, "read a folder", err, storage.ErrUnavailable)
	objectstest.Want(t, "create over a folder", s.Create(t.Context(), "blue/1", nil), objects.ErrExists)
	objectstest.Want(t, "replace a folder", s.Replace(t.Context(), "blue/1", nil, "1"), storage.ErrUnavailable)
	objectstest.Want(t, "create below an object", s.Create(t.Context(), "red/1/2", nil), storage.ErrUnavailable)
	objectstest.WantContent(t, s, "red/1", []byte("red"))
}

func TestOpenRefusesAddresses(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{
		"", "/archive", "archive", "http://127.0.0.1/", "file:archive", "file://archive", "file://host/archive",
		"file://" + dir + "?x=1", "file://" + dir + "#x", "file://" + dir + "/a%00b", "file://" + dir + "/absent/archive",
		"file://" + dir + "/file", "file://user:HIDDEN@/archive", "://HIDDEN", "s3://KEY:HIDDEN@bucket/x?region=r",
	} {
		s, err := objects.Open(t.Context(), address, objects.Options{})
		if err == nil {
			t.Errorf("%s: opened %v", address, s)
		} else if containsSecret(err) {
			t.Errorf("%s: the error has the secret: %v", address, err)
		}
	}
}
