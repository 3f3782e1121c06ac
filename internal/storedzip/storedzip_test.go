package storedzip_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/storedzip"
)

var contents = []struct{ name, text string }{
	{"checkpoint", "a\nb\n"}, {"empty", ""}, {"policies/0a.json", `{"v":1}`},
	{"entries.bin", "PK\x05\x06 PK\x01\x02\x00"},
}

func write(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w := storedzip.NewWriter(&b)
	for _, c := range contents {
		f, err := w.Create(c.name)
		if err != nil {
			t.Fatal(err)
		}
		for _, half := range []string{c.text[:len(c.text)/2], c.text[len(c.text)/2:]} {
			if _, err := io.WriteString(f, half); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The standard library can read the file, and the same contents give the same bytes.
func TestWrittenIsRead(t *testing.T) {
	b := write(t)
	if !bytes.Equal(b, write(t)) {
		t.Error("the same contents gave other bytes")
	}
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if len(z.File) != len(contents) {
		t.Fatalf("got %d files, want %d", len(z.File), len(contents))
	}
	for i, c := range contents {
		f, err := z.File[i].Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(f)
		if err != nil || z.File[i].Name != c.name || string(text) != c.text {
			t.Errorf("got %q with %q, %v, want %q with %q", z.File[i].Name, text, err, c.name, c.text)
		}
	}
}

// zeros is a writer that discards everything.
type zeros struct{}

func (zeros) Write(b []byte) (int, error) { return len(b), nil }

func TestBounds(t *testing.T) {
	w := storedzip.NewWriter(zeros{})
	for _, name := range []string{"", "/a", "a/", "../a", "a/../b", "a//b", "a\\b", "a b", "ä", ".",
		strings.Repeat("a", 256)} {
		if _, err := w.Create(name); !errors.Is(err, storedzip.ErrMalformed) {
			t.Errorf("name %q: got %v", name, err)
		}
	}
	f, err := w.Create("large")
	if err != nil {
		t.Fatal(err)
	}
	part := make([]byte, 1<<26)
	for range storedzip.MaxBytes >> 26 {
		if _, err := f.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Write(part); !errors.Is(err, storedzip.ErrTooLarge) {
		t.Errorf("beyond 4 GiB: got %v", err)
	}
	w = storedzip.NewWriter(zeros{})
	for range storedzip.MaxFiles {
		if _, err := w.Create("a"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Create("a"); !errors.Is(err, storedzip.ErrTooLarge) {
		t.Errorf("too many files: got %v", err)
	}
}
