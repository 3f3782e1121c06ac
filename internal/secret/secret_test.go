package secret_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/secret"
)

func TestTrimLineEnd(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "s": "s", "s\n": "s", "s\r\n": "s", "\n": "", "\r\n": "",
		"s\n\n": "s\n", "s\r\n\r\n": "s\r\n", "s\r": "s\r", "\ns": "\ns", " s \n": " s ",
	} {
		if got := secret.TrimLineEnd(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	t.Setenv("SECRET_OF_A_TEST", "s\r\n")
	if got := secret.Getenv("SECRET_OF_A_TEST"); got != "s" {
		t.Errorf("Getenv: got %q", got)
	}
}

func write(t *testing.T, text string, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // regardless of the umask
		t.Fatal(err)
	}
	return path
}

func TestReadLine(t *testing.T) {
	for text, want := range map[string]string{"s": "s", "s\n": "s", "s\r\n": "s", " a b ": " a b ", "": ""} {
		if got, err := secret.ReadLine(write(t, text, 0o600)); err != nil || got != want {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"s3cret\n\n", "s3cret\nanother", "s3cret\rx", "\ns3cret", "s3cret\r"} {
		_, err := secret.ReadLine(write(t, text, 0o600))
		if err == nil || !strings.Contains(err.Error(), "contains a line end") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: got %v, want the line end", text, err)
		}
	}
	if _, err := secret.ReadLine(write(t, strings.Repeat("x", 16<<10+1), 0o600)); err == nil {
		t.Error("a file of 16 KiB and one byte was read")
	}
	if _, err := secret.ReadLine(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: got %v", err)
	}
	link := filepath.Join(t.TempDir(), "link") // Kubernetes mounts links
	if err := os.Symlink(write(t, "s\n", 0o440), link); err != nil {
		t.Fatal(err)
	}
	if got, err := secret.ReadLine(link); err != nil || got != "s" {
		t.Errorf("a link: got %q, %v", got, err)
	}
}

func TestAccess(t *testing.T) {
	for mode, good := range map[fs.FileMode]bool{
		0o600: true, 0o400: true, 0o640: true, 0o440: true,
		0o644: false, 0o604: false, 0o660: false, 0o620: false, 0o610: false, 0o602: false, 0o601: false, 0o777: false,
	} {
		if _, err := secret.ReadFile(write(t, "s", mode)); (err == nil) != good {
			t.Errorf("mode %04o: got %v", mode, err)
		}
	}
}
