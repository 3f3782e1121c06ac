package main

import (
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// hashes returns the digest of each file below a folder.
func hashes(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	all := make(map[string][32]byte)
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		all[name] = sha256.Sum256(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func wantSameFiles(t *testing.T, what string, before, after map[string][32]byte) {
	t.Helper()
	for name := range maps.Keys(after) {
		if before[name] != after[name] {
			t.Errorf("%s: %s is new or changed", what, name)
		}
	}
	for name := range maps.Keys(before) {
		if _, ok := after[name]; !ok {
			t.Errorf("%s: %s is missing", what, name)
		}
	}
}

// copyData copies a data directory.
func copyData(t *testing.T, dir string) string {
	t.Helper()
	other := t.TempDir()
	err := os.CopyFS(other, os.DirFS(dir))
	if err == nil { // a copy has ordinary permissions, which are rejected
		err = os.Chmod(filepath.Join(other, "master.key"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return other
}

// checkpointFile writes the checkpoint that an organization shows into a file.
func (p *process) checkpointFile(org foundedOrganization) string {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), "checkpoint")
	if err := os.WriteFile(file, []byte(p.checkpoint(org)), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return file
}

// fsck, export and adopt write nothing to the store, whether its server was stopped or killed, and can run one after
// the other.
func TestCommandsThatOnlyRead(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, 5)
	p := startProcess(t, dir)
	checkpoint := p.checkpointFile(p.found(t.Context(), "green", nil))
	p.kill()
	before := hashes(t, filepath.Join(dir, "db"))
	for _, args := range [][]string{
		{"adopt", "--checkpoint", checkpoint}, {"fsck"}, {"export", "--to", filepath.Join(t.TempDir(), "export")},
	} {
		if out, exit := command(t, "agentledger", append(args, "--data", dir)...); exit != 0 {
			t.Errorf("%s: exit %d\n%s", args[0], exit, out)
		}
		wantSameFiles(t, args[0], before, hashes(t, filepath.Join(dir, "db")))
	}
	if err := os.Rename(filepath.Join(dir, "master.key"), filepath.Join(dir, "kept.key")); err != nil {
		t.Fatal(err)
	}
	out, exit := command(t, "agentledger", "fsck", "--data", dir)
	if exit != exitError || !strings.Contains(out, "restore the key") {
		t.Errorf("without the key: exit %d\n%s", exit, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "master.key")); err == nil {
		t.Error("fsck created a master key")
	}
	if out, exit := command(t, "agentledger", "fsck", "--data", dir, "--older-master-key-file", filepath.Join(dir, "kept.key")); exit != 0 {
		t.Errorf("with the key as an older one: exit %d\n%s", exit, out)
	}
}

// offlineCommands are all commands that open a store, with arguments.
func offlineCommands(dir, checkpoint, export string) [][]string {
	return [][]string{
		{"serve", "--data", dir, "--public-url", "http://log.example", "--listen", "127.0.0.1:0", "--id-listen", "127.0.0.1:0", "--metrics-listen", ""},
		{"fsck", "--data", dir},
		{"export", "--data", dir, "--to", export},
		{"export", "--data", dir, "--to", export, "--retire"},
		{"adopt", "--data", dir, "--checkpoint", checkpoint},
		{"init", "--data", dir, "--public-url", "http://log.example", "--name", "New", "--slug", "new", "--admin-email", "new@example.com"},
	}
}

// Every command rejects a store with a missing file or of a newer program with an explanation, and changes none of its
// files.
func TestRejectedStores(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, 30)
	startProcess(t, dir).terminate() // its events are in tables now
	p := startProcess(t, dir)
	checkpoint := p.checkpointFile(p.found(t.Context(), "green", nil))
	p.kill()
	for name, c := range map[string]struct {
		damage func(db string) error
		says   string
	}{
		"marker": {func(db string) error { return os.Remove(newest(t, db, "marker.manifest.*")) }, "marker.manifest.*, the file that names"},
		"manifest cut in half": {func(db string) error {
			manifest := newest(t, db, "MANIFEST-*")
			info, err := os.Stat(manifest)
			if err != nil {
				return err
			}
			return os.Truncate(manifest, info.Size()/2)
		}, "restore the file"},
		"manifest": {func(db string) error { return os.Remove(newest(t, db, "MANIFEST-*")) }, "is missing"},
		"newer format": {func(db string) error {
			line := "agentledger-store/4 of some other form "
			c := crc32.Checksum([]byte(line), crc32.MakeTable(crc32.Castagnoli))
			line += fmt.Sprintf("%08x\n", bits.RotateLeft32(c, 17)+0xa282ead8)
			return os.WriteFile(filepath.Join(db, "agentledger.store"), []byte(line+strings.Repeat(" ", 1024-len(line))), 0o600)
		}, "created by a newer agentledger"},
	} {
		t.Run(name, func(t *testing.T) {
			other := copyData(t, dir)
			if err := c.damage(filepath.Join(other, "db")); err != nil {
				t.Fatal(err)
			}
			before, want := hashes(t, other), exitError
			if name == "newer format" {
				want = exitRefused
			}
			for _, args := range offlineCommands(other, checkpoint, filepath.Join(t.TempDir(), "export")) {
				out, exit := command(t, "agentledger", args...)
				if exit != want || !strings.Contains(out, c.says) {
					t.Errorf("%s: exit %d, want %d and %q\n%s", args[0], exit, want, c.says, out)
				}
				wantSameFiles(t, args[0], before, hashes(t, other))
			}
		})
	}
}

func newest(t *testing.T, dir, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	return slices.Max(files)
}
