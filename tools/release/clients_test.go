package main

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/clients"
	"github.com/agentledger/agentledger/edkey"
)

func TestVersionForm(t *testing.T) {
	for version, valid := range map[string]bool{"0.0.0": true, "1.2.3-rc.1": true, "1.2.3-alpha.10": true, "1.2.3-beta.0": true,
		"1.2.3-rc1": false, "1.2.3-dirty": false, "1.2": false, "v1.2.3": false, "1.2.3-rc.01": false} {
		if versionForm.MatchString(version) != valid {
			t.Errorf("%s: want valid %v", version, valid)
		}
	}
}

// copyClients returns a source tree that has the clients only.
func copyClients(t *testing.T) programSource {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"typescript/src", "python/src"} {
		if err := os.CopyFS(filepath.Join(dir, "clients", name), os.DirFS(filepath.Join("../../clients", name))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"typescript/package.json", "typescript/README.md", "typescript/LICENSE", "python/METADATA",
		"python/pyproject.toml", "python/README.md"} {
		text, err := os.ReadFile(filepath.Join("../../clients", name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, "clients"), name, string(text))
	}
	return programSource{Dir: dir}
}

// The packages have the version of the release, and one signature, with the key or with the note of the first build.
func TestEmbedClients(t *testing.T) {
	dir := t.TempDir()
	seed := edkey.NewPrivate().Seed()
	writeFile(t, dir, "release.key", base64.StdEncoding.EncodeToString(seed[:])+"\n")
	unsigned := &release{options: options{version: "1.2.3-rc.4"}, source: copyClients(t)}
	if err := unsigned.embedClients(); err != nil || unsigned.source.ClientsNote != "" {
		t.Fatalf("got %v, %q", err, unsigned.source.ClientsNote)
	}
	set, err := clients.Build(os.DirFS(filepath.Join(unsigned.source.Dir, "clients")))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"agentledger-client-1.2.3-rc.4.tgz", "agentledger-1.2.3rc4-py3-none-any.whl", "agentledger-1.2.3rc4.tar.gz"} {
		if !strings.Contains(set.Sums, "  "+name+"\n") {
			t.Errorf("got %s, want %s", set.Sums, name)
		}
	}
	signed := &release{options: options{version: "1.2.3-rc.4", keyFile: filepath.Join(dir, "release.key")}, source: copyClients(t)}
	if err := signed.embedClients(); err != nil {
		t.Fatal(err)
	}
	note, err := base64.StdEncoding.DecodeString(signed.source.ClientsNote)
	if err != nil || !bytes.HasPrefix(note, []byte(set.Sums+"\n— ")) {
		t.Fatalf("%v: got the note %s", err, note)
	}
	writeFile(t, dir, "note", string(note))
	again := &release{options: options{version: "1.2.3-rc.4", noteFile: filepath.Join(dir, "note")}, source: copyClients(t)}
	if err := again.embedClients(); err != nil || again.source.ClientsNote != signed.source.ClientsNote {
		t.Errorf("%v: got another note", err)
	}
	other := &release{options: options{version: "1.2.4", noteFile: filepath.Join(dir, "note")}, source: copyClients(t)}
	if err := other.embedClients(); err == nil {
		t.Error("a note of another version was embedded")
	}
}
