package storedzip_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"hash/crc32"
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

// read returns names and contents, after a look at the sums.
func read(b []byte) (names, texts []string, err error) {
	files, err := storedzip.Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, nil, err
	}
	for _, f := range files {
		text := b[f.Offset : f.Offset+f.Size]
		if crc32.ChecksumIEEE(text) != f.CRC {
			return nil, nil, storedzip.ErrMalformed
		}
		names, texts = append(names, f.Name), append(texts, string(text))
	}
	return names, texts, nil
}

// Both this package and the standard library read a written file.
func TestWrittenIsRead(t *testing.T) {
	b := write(t)
	names, texts, err := read(b)
	if err != nil {
		t.Fatal(err)
	}
	other, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != len(contents) || len(other.File) != len(contents) {
		t.Fatalf("got %d and %d files, want %d", len(names), len(other.File), len(contents))
	}
	for i, c := range contents {
		if names[i] != c.name || texts[i] != c.text {
			t.Errorf("got %q with %q, want %q with %q", names[i], texts[i], c.name, c.text)
		}
		f, err := other.File[i].Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(f)
		if err != nil || other.File[i].Name != c.name || string(text) != c.text {
			t.Errorf("archive/zip: got %q with %q, %v", other.File[i].Name, text, err)
		}
	}
}

// A change of any bit, a byte less and a byte more anywhere are refused.
func TestEachChangeIsRefused(t *testing.T) {
	b := write(t)
	for i := range b {
		for bit := range 8 {
			bent := bytes.Clone(b)
			bent[i] ^= 1 << bit
			if _, _, err := read(bent); !errors.Is(err, storedzip.ErrMalformed) {
				t.Errorf("bit %d of byte %d: got %v", bit, i, err)
			}
		}
		for what, bent := range map[string][]byte{
			"less":   append(bytes.Clone(b[:i]), b[i+1:]...),
			"more":   append(append(bytes.Clone(b[:i]), 0), b[i:]...),
			"cut":    b[:i],
			"doubly": append(append(bytes.Clone(b[:i]), b[i]), b[i:]...),
		} {
			if _, _, err := read(bent); !errors.Is(err, storedzip.ErrMalformed) {
				t.Errorf("%s at byte %d: got %v", what, i, err)
			}
		}
	}
	if _, _, err := read(append(b, 0)); !errors.Is(err, storedzip.ErrMalformed) {
		t.Errorf("a byte behind: got %v", err)
	}
}

// zeros is a writer that keeps nothing.
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

// A file that is read is the one that a Writer writes of the same contents.
func FuzzRead(f *testing.F) {
	b := write(f)
	f.Add(b)
	f.Add(b[len(b)-22:])
	f.Fuzz(func(t *testing.T, b []byte) {
		files, err := storedzip.Read(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		var again bytes.Buffer
		w := storedzip.NewWriter(&again)
		for _, file := range files {
			text := b[file.Offset : file.Offset+file.Size]
			if crc32.ChecksumIEEE(text) != file.CRC {
				return
			}
			to, err := w.Create(file.Name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := to.Write(text); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil || !bytes.Equal(again.Bytes(), b) {
			t.Errorf("read %q, which is written otherwise: %v", b, err)
		}
	})
}
