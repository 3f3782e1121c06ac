package seal_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/seal"
)

const goodFile = "agentledger-master-key/v1\n" + secret + "\n"

func write(t *testing.T, content string, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "master.key")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // past the umask
		t.Fatal(err)
	}
	return path
}

func TestLoadOrCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "master.key")
	key, created, err := seal.LoadOrCreateKey(path)
	if err != nil || !created {
		t.Fatalf("first: created %v, %v", created, err)
	}
	value := sealed(t, ring(t, key), contextA, "secret")
	again, created, err := seal.LoadOrCreateKey(path)
	if err != nil || created {
		t.Fatalf("second: created %v, %v", created, err)
	}
	if got, err := ring(t, again).Open(contextA, value); err != nil || string(got) != "secret" {
		t.Errorf("the loaded key opens to %q, %v", got, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode(); got != 0o600 {
		t.Errorf("mode: got %v, want 0600", got)
	}
}

func TestLoadReadsTheStoredForm(t *testing.T) {
	want, err := seal.KeyFromSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]struct {
		content string
		mode    fs.FileMode
	}{
		"as it is written":          {goodFile, 0o600},
		"read-only":                 {goodFile, 0o400},
		"readable by the own group": {goodFile, 0o440},
		"no last line end":          {strings.TrimSuffix(goodFile, "\n"), 0o600},
		"CRLF":                      {strings.ReplaceAll(goodFile, "\n", "\r\n"), 0o600},
		"CRLF once":                 {strings.TrimSuffix(goodFile, "\n") + "\r\n", 0o600},
	} {
		key, err := seal.LoadKey(write(t, file.content, file.mode))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := ring(t, want).Open(contextA, sealed(t, ring(t, key), contextA, "x")); err != nil {
			t.Errorf("%s: another key was read: %v", name, err)
		}
	}
}

func TestLoadRefusesAccessOfOthers(t *testing.T) {
	for _, mode := range []fs.FileMode{0o660, 0o604, 0o620, 0o602, 0o610, 0o601, 0o666, 0o777} {
		path := write(t, goodFile, mode)
		if _, err := seal.LoadKey(path); err == nil {
			t.Errorf("mode %v: loaded", mode)
		}
		if _, created, err := seal.LoadOrCreateKey(path); err == nil || created {
			t.Errorf("mode %v: created %v, %v", mode, created, err)
		}
	}
}

func TestLoadRefusesContent(t *testing.T) {
	for name, content := range map[string]string{
		"empty":                 "",
		"header alone":          "agentledger-master-key/v1\n",
		"key alone":             secret + "\n",
		"cut short":             goodFile[:len(goodFile)-10],
		"two last line ends":    goodFile + "\n",
		"CR at the end":         strings.TrimSuffix(goodFile, "\n") + "\r",
		"another version":       strings.Replace(goodFile, "v1", "v2", 1),
		"byte order mark":       "\ufeff" + goodFile,
		"key of 31 bytes":       "agentledger-master-key/v1\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg==\n",
		"second key":            goodFile + secret + "\n",
		"longer than any other": goodFile + strings.Repeat("x", 1<<13),
	} {
		path := write(t, content, 0o600)
		_, err := seal.LoadKey(path)
		if !errors.Is(err, seal.ErrMalformed) {
			t.Errorf("%s: got %v, want ErrMalformed", name, err)
		}
		if _, _, err := seal.LoadOrCreateKey(path); !errors.Is(err, seal.ErrMalformed) {
			t.Errorf("%s: LoadOrCreate: got %v, want ErrMalformed", name, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("%s: the file was changed: %v", name, err)
		}
	}
}

func TestLoadRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.LoadKey(dir); err == nil {
		t.Error("loaded a directory")
	}
	if _, err := seal.LoadKey(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: got %v, want ErrNotExist", err)
	}
	if _, _, err := seal.LoadOrCreateKey(filepath.Join(dir, "none", "master.key")); err == nil {
		t.Error("created a file in a missing directory")
	}
	dangling := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), dangling); err != nil {
		t.Fatal(err)
	}
	if _, _, err := seal.LoadOrCreateKey(dangling); err == nil {
		t.Error("created a file through a link")
	}
}
