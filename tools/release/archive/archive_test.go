package archive_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentledger/agentledger/tools/release/archive"
)

var at = time.Unix(1_700_000_000, 0)

// writeTwice writes the same archive at two times of the machine, and returns the bytes of both.
func writeTwice(t *testing.T, write func(string, []archive.File, time.Time) error) (first, second []byte) {
	t.Helper()
	var got [2][]byte
	for i := range got {
		dir := t.TempDir()
		source := filepath.Join(dir, "program")
		if err := os.WriteFile(source, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(source, at.Add(time.Hour), at.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(dir, "archive")
		if err := write(target, []archive.File{{Name: "aps/aps", Source: source, Mode: 0o755}}, at); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(target)
		if err != nil {
			t.Fatal(err)
		}
		got[i] = content
	}
	return got[0], got[1]
}

func TestTarGz(t *testing.T) {
	first, second := writeTwice(t, archive.WriteTarGz)
	if !bytes.Equal(first, second) {
		t.Error("two archives of the same files differ")
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	head, err := tar.NewReader(unpacked).Next()
	if err != nil || head.Name != "aps/aps" || head.Mode != 0o755 || head.Uid != 0 || !head.ModTime.Equal(at) {
		t.Errorf("got %+v, %v", head, err)
	}
}

func TestZip(t *testing.T) {
	first, second := writeTwice(t, archive.WriteZip)
	if !bytes.Equal(first, second) {
		t.Error("two archives of the same files differ")
	}
	r, err := zip.NewReader(bytes.NewReader(first), int64(len(first)))
	if err != nil || len(r.File) != 1 || r.File[0].Name != "aps/aps" || r.File[0].Mode() != 0o755 {
		t.Errorf("got %+v, %v", r, err)
	}
}
