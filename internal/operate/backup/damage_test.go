package backup_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/operate/backup"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// source returns a snapshot of a few files without ledgers: damage does not depend on their content.
func source(t *testing.T, at time.Time) backup.Source {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"000004.sst": "a table", "000009.log": "a log", "marker.manifest.1": "",
		"LOCK": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keyring, err := seal.NewKeyring(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	heads := backup.Heads{Store: storagetest.NewModel(), Keyring: keyring, Report: func(s string) { t.Error(s) }}
	return backup.Source{Dir: dir, Heads: heads, Version: "test", Clock: func() time.Time { return at }}
}

var day = time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)

// Equal tables are shared between backups; logs and changed tables never are.
func TestSharedTables(t *testing.T) {
	into := t.TempDir()
	first := source(t, day)
	one, err := first.MakeIn(t.Context(), into)
	if err != nil {
		t.Fatal(err)
	}
	if one.Shared != 0 || len(one.Files) != 4 { // three files of the store, and the heads
		t.Errorf("the first: got %+v", one)
	}
	second := first
	second.Clock = func() time.Time { return day.Add(time.Hour) }
	two, err := second.MakeIn(t.Context(), into)
	if err != nil || two.Shared != int64(len("a table")) {
		t.Errorf("the second: got %d shared bytes, %v", two.Shared, err)
	}
	same := func(name string) bool {
		a, errA := os.Stat(filepath.Join(one.Path, name))
		b, errB := os.Stat(filepath.Join(two.Path, name))
		return errors.Join(errA, errB) == nil && os.SameFile(a, b)
	}
	if !same("db/000004.sst") || same("db/000009.log") {
		t.Errorf("shared: table %v, log %v", same("db/000004.sst"), same("db/000009.log"))
	}
	if err := os.WriteFile(filepath.Join(first.Dir, "000004.sst"), []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	second.Clock = func() time.Time { return day.Add(2 * time.Hour) }
	three, err := second.MakeIn(t.Context(), into)
	if err != nil || three.Shared != 0 {
		t.Errorf("another table of that name: got %d shared bytes, %v", three.Shared, err)
	}
	if err := three.Mark(backup.Whole, day); err != nil {
		t.Fatal(err)
	}
	if n, err := three.RemoveOld(t.Context(), into, 2, func(s string) { t.Error(s) }); n != 0 || err != nil {
		t.Errorf("removal: got %d that stay, %v", n, err)
	}
	left, err := os.ReadDir(into)
	if err != nil || len(left) != 2 || left[0].Name() == filepath.Base(one.Path) {
		t.Errorf("kept: got %v, %v", left, err)
	}
	for _, made := range []backup.Made{two, three} {
		x, err := backup.Extract(t.Context(), made.Path, filepath.Join(t.TempDir(), "x"), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(made.Path, "manifest.json"))
		want := fmt.Sprintf("%x", sha256.Sum256(text))
		for _, m := range []backup.Manifest{made.Manifest, x.Manifest} {
			if name, nameErr := m.Name(); name != want || errors.Join(err, nameErr) != nil {
				t.Errorf("%s: got %s, want %s, %v", made.Path, name, want, errors.Join(err, nameErr))
			}
		}
	}
}

// A table that is damaged in the previous backup is copied, not linked, so the new backup is whole. The damaged
// backup is named and marked, and the next backup links to the sound table again.
func TestDamagedTableIsNotLinked(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"a flipped bit": func(path string) error { return flipFirstBit(path) },
		"cut off":       func(path string) error { return os.Truncate(path, 3) },
		"missing":       os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			into, from := t.TempDir(), source(t, day)
			makeAt := func(n int) backup.Made {
				t.Helper()
				from.Clock = func() time.Time { return day.Add(time.Duration(n) * time.Hour) }
				made, err := from.MakeIn(t.Context(), into)
				if err != nil {
					t.Fatal(err)
				}
				return made
			}
			one := makeAt(0)
			if err := errors.Join(one.Mark(backup.Whole, day), damage(filepath.Join(one.Path, "db", "000004.sst"))); err != nil {
				t.Fatal(err)
			}
			two := makeAt(1)
			if two.Shared != 0 || two.Damaged == nil || two.Damaged.Path != one.Path ||
				!strings.Contains(two.Damaged.Err.Error(), "db/000004.sst does not match the manifest") {
				t.Errorf("after the damage: %d shared bytes, damage %v", two.Shared, two.Damaged)
			}
			if _, err := backup.Inspect(t.Context(), two.Path, nil); err != nil {
				t.Error(err)
			}
			if text, err := os.ReadFile(filepath.Join(one.Path, "verification.json")); err != nil || !strings.Contains(string(text), `"failed"`) {
				t.Errorf("mark of the damaged one: %s, %v", text, err)
			}
			three := makeAt(2)
			if three.Shared != int64(len("a table")) || three.Damaged != nil {
				t.Errorf("the third: %d shared bytes, damage %v", three.Shared, three.Damaged)
			}
			if _, err := backup.Inspect(t.Context(), three.Path, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// flipFirstBit flips a bit of a file in place, so that every link to it is damaged.
func flipFirstBit(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	b := make([]byte, 1)
	_, err = f.ReadAt(b, 0)
	b[0] ^= 1
	if err == nil {
		_, err = f.WriteAt(b, 0)
	}
	return errors.Join(err, f.Close())
}

// A backup interrupted by a crash is removed by the next one, and does not count as a backup before.
func TestUnfinished(t *testing.T) {
	into := t.TempDir()
	left := filepath.Join(into, "20261123T000000.000Z.new")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := source(t, day).MakeIn(t.Context(), into); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := source(t, day).MakeIn(t.Context(), into); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second one at the same time: got %v", err)
	}
}

// Every kind of damage of a directory is found, and the restore leaves nothing behind.
func TestDamagedFolder(t *testing.T) {
	write := func(name, text string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	}
	remove := func(name string) func(string) error {
		return func(dir string) error { return os.Remove(filepath.Join(dir, name)) }
	}
	for name, damage := range map[string]func(dir string) error{
		"a changed table":    write("db/000004.sst", "a tablf"),
		"a longer log":       write("db/000009.log", "a log "),
		"an emptied log":     write("db/000009.log", ""),
		"changed heads":      write("heads.jsonl", "{}\n"),
		"a missing table":    remove("db/000004.sst"),
		"a missing marker":   remove("db/marker.manifest.1"),
		"a manifest of text": write("manifest.json", "text"),
		"a manifest of none": write("manifest.json", "{}"),
	} {
		t.Run(name, func(t *testing.T) {
			made, err := source(t, day).MakeIn(t.Context(), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(made.Path); err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(t.TempDir(), "x")
			if _, err := backup.Extract(t.Context(), made.Path, to, nil); err == nil {
				t.Error("it is extracted")
			}
			if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it left %s: %v", to, err)
			}
			if _, err := backup.Inspect(t.Context(), made.Path, nil); err == nil {
				t.Error("its inspection finds nothing")
			}
		})
	}
}

// Checking a backup does not change it and leaves nothing behind.
func TestInspect(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "one.tar")
	if _, err := source(t, day).MakeFile(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	made, err := source(t, day).MakeIn(t.Context(), filepath.Join(dir, "all"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, made.Path} {
		x, err := backup.Inspect(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(x.StoreDir(), "000004.sst")); err != nil || string(text) != "a table" {
			t.Errorf("%s: got %q, %v", path, text, err)
		}
		if err := x.Remove(); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := backup.Inspect(t.Context(), made.Path, nil); err != nil {
		t.Errorf("once more: %v", err)
	}
}

// rewrite copies a tar file with changed entries.
func rewrite(t *testing.T, from, to string, change func(h *tar.Header, content []byte) (*tar.Header, []byte)) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for r := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h, content = change(h, content); h == nil {
			continue
		}
		h.Size = int64(len(content))
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), os.WriteFile(to, out.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// No entry of a tar file leads out of the directory, and every kind of damage is found.
func TestDamagedFile(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole.tar")
	if _, err := source(t, day).MakeFile(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	named := func(from, to string) func(h *tar.Header, c []byte) (*tar.Header, []byte) {
		return func(h *tar.Header, c []byte) (*tar.Header, []byte) {
			if h.Name == from {
				h.Name = to
			}
			return h, c
		}
	}
	for name, change := range map[string]func(h *tar.Header, c []byte) (*tar.Header, []byte){
		"a path out":       named("db/000004.sst", "../000004.sst"),
		"an absolute path": named("db/000004.sst", "/tmp/000004.sst"),
		"a folder deeper":  named("db/000004.sst", "db/more/000004.sst"),
		"another name":     named("db/000004.sst", "db/000005.sst"),
		"no manifest":      named("manifest.json", "db/manifest.json"),
		"a link": func(h *tar.Header, c []byte) (*tar.Header, []byte) {
			if h.Name == "db/000009.log" {
				h.Typeflag, h.Linkname, c = tar.TypeSymlink, "/etc/passwd", nil
			}
			return h, c
		},
		"a changed byte": func(h *tar.Header, c []byte) (*tar.Header, []byte) {
			if h.Name == "db/000009.log" {
				c[0] ^= 1
			}
			return h, c
		},
		"a file less": func(h *tar.Header, c []byte) (*tar.Header, []byte) {
			if h.Name == "db/000009.log" {
				return nil, nil
			}
			return h, c
		},
	} {
		t.Run(name, func(t *testing.T) {
			bent, to := filepath.Join(t.TempDir(), "bent.tar"), filepath.Join(t.TempDir(), "x")
			rewrite(t, whole, bent, change)
			if _, err := backup.Extract(t.Context(), bent, to, nil); !errors.Is(err, backup.ErrDamaged) {
				t.Errorf("got %v", err)
			}
			if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it left %s: %v", to, err)
			}
		})
	}
	if _, err := backup.Extract(t.Context(), whole, filepath.Join(t.TempDir(), "x"), nil); err != nil {
		t.Errorf("the whole one: %v", err)
	}
}

// A sparse entry of a tar file can claim to be larger than the tar file itself. None of it is written.
func TestSparseFile(t *testing.T) {
	const realSize = 1 << 40
	content := make([]byte, 512)
	copy(content, fmt.Sprintf("1\n%d\n0\n", realSize))
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "Sparse/x", Size: int64(len(content)), Format: tar.FormatPAX,
		PAXRecords: map[string]string{"not.sparse.major": "1", "not.sparse.minor": "0", "not.sparse.name": "db/000001.sst",
			"not.sparse.realsize": fmt.Sprint(realSize)}})
	if err == nil {
		_, err = w.Write(content)
	}
	path, to := filepath.Join(t.TempDir(), "sparse.tar"), filepath.Join(t.TempDir(), "x")
	sparse := bytes.ReplaceAll(text.Bytes(), []byte("not.sparse"), []byte("GNU.sparse")) // tar.Writer does not write this type
	if err := errors.Join(err, w.Close(), os.WriteFile(path, sparse, 0o600)); err != nil {
		t.Fatal(err)
	}
	h, err := tar.NewReader(bytes.NewReader(sparse)).Next()
	if err != nil || h.Size != realSize || h.Name != "db/000001.sst" {
		t.Fatalf("got %+v, %v", h, err)
	}
	if _, err := backup.Extract(t.Context(), path, to, nil); !errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), "is too long") {
		t.Errorf("got %v", err)
	}
}

// A file that is truncated anywhere is damaged.
func TestCutFile(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole.tar")
	if _, err := source(t, day).MakeFile(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.tar")
	for end := 0; end < len(text)-4*512; end += 256 { // the rest is padding
		if err := os.WriteFile(cut, text[:end], 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := backup.Extract(t.Context(), cut, filepath.Join(t.TempDir(), "x"), nil)
		if !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("cut at %d of %d: got %v", end, len(text), err)
		}
	}
}
