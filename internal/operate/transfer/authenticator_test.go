package transfer_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/operate/rekey"
	"github.com/agentledger/agentledger/internal/operate/transfer"
)

var authenticatorMember = regexp.MustCompile(`,"authenticator":"[0-9a-f]*"`)

// resum writes the sums of all pieces and manifests of an export again, as somebody without a key can.
func resum(t testing.TB, dir string) {
	t.Helper()
	end := func(path string) string {
		t.Helper()
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.SplitAfter(bytes.TrimSuffix(content, []byte("\n")), []byte("\n"))
		body := bytes.Join(lines[:len(lines)-1], nil)
		sum := sha256.Sum256(body)
		last := regexp.MustCompile(`"sha256":"[0-9a-f]*"`).ReplaceAll(lines[len(lines)-1], []byte(`"sha256":"`+hex.EncodeToString(sum[:])+`"`))
		last = regexp.MustCompile(`"lines":\d+`).ReplaceAll(last, []byte(`"lines":`+itoa(len(lines)-2)))
		if err := os.WriteFile(path, append(append(body, last...), '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		return hex.EncodeToString(sum[:])
	}
	manifests, err := filepath.Glob(filepath.Join(dir, "*", "manifest.ndjson"))
	if err != nil || len(manifests) == 0 {
		t.Fatal(manifests, err)
	}
	listed := map[string]string{}
	for _, path := range manifests {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		for i, line := range lines {
			var p struct{ File, SHA256 string }
			if json.Unmarshal([]byte(line), &p) == nil && p.File != "" {
				lines[i] = strings.Replace(line, p.SHA256, end(filepath.Join(filepath.Dir(path), p.File)), 1)
			}
		}
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		listed[filepath.Base(filepath.Dir(path))] = end(path)
	}
	path := filepath.Join(dir, "manifest.ndjson")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		var o struct {
			ID     string `json:"organization_id"`
			Origin string
			SHA256 string
		}
		if json.Unmarshal([]byte(line), &o) == nil && o.Origin != "" {
			lines[i] = strings.Replace(line, o.SHA256, listed[o.ID], 1)
		}
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	end(path)
}

func itoa(n int) string { return string(json.Number(mustJSON(n))) }

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// An export is accepted under a master key of the service that wrote it, and unchanged. If it was changed, has no
// authenticators, as from older programs, or is under another key, it is accepted only with Unauthenticated.
func TestExportAuthenticators(t *testing.T) {
	here, red, _ := town(t, 20)
	dir := filepath.Join(t.TempDir(), "export")
	here.export(dir, "red")
	pristine := files(t, dir)
	for name, text := range pristine {
		if n := len(authenticatorMember.FindAllString(text, -1)); n != 1 {
			t.Errorf("%s has %d authenticators, want 1", name, n)
		}
	}
	organization := red.State.Identity().Organization.String()
	for name, tt := range map[string]struct {
		edit func(files map[string]string)
		keys *house
		open bool // accepted with Unauthenticated
	}{
		"no authenticator of the export": {func(f map[string]string) { without(f, "manifest.ndjson") }, here, true},
		"none of the organization":       {func(f map[string]string) { without(f, organization+"/manifest.ndjson") }, here, true},
		"none at all": {func(f map[string]string) {
			for name := range f {
				without(f, name)
			}
		}, here, true},
		"another master key": {func(map[string]string) {}, &house{keyring: newKeyring(t)}, false}, // its keys stay sealed
		"an edited record": {func(f map[string]string) {
			name := organization + "/records.ndjson"
			f[name] = regexp.MustCompile(`("kind":"org".*?"version":)\d+`).ReplaceAllString(f[name], `${1}7`)
		}, here, true},
		"a manifest in place of another": {func(f map[string]string) {
			f["manifest.ndjson"] = authenticatorMember.ReplaceAllString(f["manifest.ndjson"],
				authenticatorMember.FindString(f[organization+"/manifest.ndjson"]))
		}, here, true},
	} {
		t.Run(name, func(t *testing.T) {
			changed := maps.Clone(pristine)
			if tt.edit(changed); maps.Equal(changed, pristine) && name != "another master key" {
				t.Fatal("nothing changed")
			}
			broken := filepath.Join(t.TempDir(), "export")
			restore(t, broken, changed)
			resum(t, broken)
			there := newHouse(t, model(t), tt.keys.keyring)
			_, checked := there.checkExport(broken, "")
			_, imported := there.tryImport(broken, "")
			if !errors.Is(checked, transfer.ErrUnauthenticated) || !errors.Is(imported, transfer.ErrUnauthenticated) {
				t.Errorf("check: got %v\nimport: got %v", checked, imported)
			}
			if tenants := collect(t, there.engine.Tenants(t.Context())); len(tenants) > 0 || len(serviceRecords(t, there.engine)) > 0 {
				t.Errorf("something was written: %v", tenants)
			}
			i := &transfer.Importer{Place: there.place(there.openAnchors()), Dir: broken, Sealed: rekey.SealedRecords(), Unauthenticated: true}
			if _, err := i.Run(t.Context(), ""); (err == nil) != tt.open {
				t.Errorf("unauthenticated: got %v", err)
			}
		})
	}
	if _, err := (&transfer.Importer{Dir: dir}).Check(t.Context(), ""); !errors.Is(err, transfer.ErrUnauthenticated) {
		t.Errorf("without a master key: got %v", err)
	}
}

func without(files map[string]string, name string) {
	files[name] = authenticatorMember.ReplaceAllString(files[name], "")
}

// A killed export does not vouch for a piece that somebody changed before it was run again.
func TestResumedExportChecksItsPieces(t *testing.T) {
	here, red, _ := town(t, 60)
	dir := filepath.Join(t.TempDir(), "export")
	here.export(dir, "red")
	organization := red.State.Identity().Organization.String()
	pristine := files(t, dir)
	first := slices.Min(slices.Collect(maps.Keys(filter(pristine, organization+"/events-"))))
	for name, edit := range map[string]func(string) string{
		"no authenticator": func(s string) string { return authenticatorMember.ReplaceAllString(s, "") },
		"another digest of an idempotency key": func(s string) string {
			return strings.Replace(s, `"idempotency_key_digest":"`, `"idempotency_key_digest":"`+strings.Repeat("0", 32), 1)
		},
	} {
		changed := maps.Clone(pristine)
		changed[first] = edit(changed[first])
		broken := filepath.Join(t.TempDir(), "export")
		restore(t, broken, changed)
		resum(t, broken)
		if err := os.Remove(filepath.Join(broken, "manifest.ndjson")); err != nil {
			t.Fatal(err)
		}
		if err := here.tryExport(broken, "red"); !errors.Is(err, transfer.ErrUnauthenticated) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
