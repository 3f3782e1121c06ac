package backup_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/operate/backup"
	"github.com/agentledger/agentledger/internal/seal"
)

// A backup is accepted only if its manifest was written under a master key of the service. One whose files and sums
// were changed, whose authenticator was removed (as in backups of older programs) or that another service made is
// accepted only without that check.
func TestAuthenticator(t *testing.T) {
	for _, archive := range []bool{false, true} {
		s := source(t, day)
		var made backup.Made
		var err error
		if archive {
			made, err = s.MakeFile(t.Context(), filepath.Join(t.TempDir(), "b.tar"))
		} else {
			made, err = s.MakeIn(t.Context(), t.TempDir())
		}
		if err != nil {
			t.Fatal(err)
		}
		rotated, err := seal.NewKeyring(seal.NewKey())
		if err != nil {
			t.Fatal(err)
		}
		var before string
		for name, tt := range map[string]struct {
			keyring *seal.Keyring
			edit    func(string) string // edits the manifest
			want    error
		}{
			"as made":                   {s.Heads.Keyring, nil, nil},
			"another master key":        {rotated, nil, backup.ErrUnauthenticated},
			"another name of program":   {s.Heads.Keyring, replace(`"version": "test"`, `"version": "tesu"`), backup.ErrUnauthenticated},
			"fewer faults":              {s.Heads.Keyring, replace(`"faults": 0`, `"faults": 1`), backup.ErrUnauthenticated},
			"another sum":               {s.Heads.Keyring, func(m string) string { return bend(m, `"sha256": "`) }, backup.ErrUnauthenticated},
			"another authenticator":     {s.Heads.Keyring, func(m string) string { return bend(m, `"authenticator": "`) }, backup.ErrUnauthenticated},
			"no authenticator":          {s.Heads.Keyring, withoutAuthenticator, backup.ErrUnauthenticated},
			"no authenticator, no keys": {nil, withoutAuthenticator, nil},
		} {
			path := filepath.Join(t.TempDir(), filepath.Base(made.Path))
			copyEdited(t, made.Path, path, func(m string) string {
				before = m
				if tt.edit == nil {
					return m
				}
				if m = tt.edit(m); m == before {
					t.Fatalf("%s: nothing changed in %s", name, m)
				}
				return m
			})
			to := filepath.Join(t.TempDir(), "x")
			if _, err := backup.Extract(t.Context(), path, to, tt.keyring); !errors.Is(err, tt.want) {
				t.Errorf("%s: Extract: got %v, want %v", name, err, tt.want)
			}
			if _, err := os.Stat(to); (err == nil) != (tt.want == nil) {
				t.Errorf("%s: the folder: %v", name, err)
			}
			if x, err := backup.Inspect(t.Context(), path, tt.keyring); !errors.Is(err, tt.want) {
				t.Errorf("%s: Inspect: got %v, want %v", name, err, tt.want)
			} else if err == nil && x.Remove() != nil {
				t.Errorf("%s: the extracted files stay", name)
			}
		}
	}
}

func replace(from, to string) func(string) string {
	return func(m string) string { return strings.Replace(m, from, to, 1) }
}

// bend changes the character that follows a text.
func bend(m, after string) string {
	b, at := []byte(m), strings.Index(m, after)+len(after)
	if b[at]++; b[at] == '9'+1 || b[at] == 'f'+1 {
		b[at] = '0'
	}
	return string(b)
}

func withoutAuthenticator(m string) string {
	at := strings.Index(m, `,`+"\n"+`  "authenticator"`)
	return m[:at] + "\n}\n"
}

// copyEdited copies a backup and edits its manifest.
func copyEdited(t *testing.T, from, to string, edit func(string) string) {
	t.Helper()
	if !backup.IsArchive(from) {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(to, "manifest.json")
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(edit(string(text))), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r, w := tar.NewReader(bytes.NewReader(content)), tar.NewWriter(&out)
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		text, failed := io.ReadAll(r)
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		if h.Name == "manifest.json" {
			text = []byte(edit(string(text)))
			h.Size = int64(len(text))
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), os.WriteFile(to, out.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}
