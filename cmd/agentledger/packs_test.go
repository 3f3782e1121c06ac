package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/storedzip"
)

// unzipped returns the names and contents of a ZIP file.
func unzipped(t *testing.T, file string) (names []string, contents map[string][]byte) {
	t.Helper()
	z, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	contents = map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, f.Name)
		if contents[f.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	return names, contents
}

// A repacked pack is detected by the log's event of its export, which aps verify fetches and verifies.
func TestRepackedPacks(t *testing.T) {
	p := startProcess(t, t.TempDir())
	red, blue := p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil)
	home := t.TempDir()
	aps := func(email string, args ...string) (string, int) {
		return commandWith(t, []string{"APS_EMAIL=" + email, "APS_PASSWORD=" + testPassword, "XDG_CONFIG_HOME=" + home}, "aps", args...)
	}
	honest := filepath.Join(home, "honest.zip")
	if out, exit := aps("ops@red.example", "evidence", "--url", p.main, "--envelopes", "--out", honest); exit != 0 {
		t.Fatal(out)
	}
	names, contents := unzipped(t, honest)
	digest := sha256.Sum256(contents["manifest.json"])
	var again bytes.Buffer // by another program
	z := zip.NewWriter(&again)
	for _, name := range names {
		w, err := z.Create("red/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(contents[name]); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(home, "folder", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, contents[name], 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	// The carrier writes another report, and another manifest.
	report := contents["report.html"]
	forged := append(bytes.Clone(report), ' ')
	sum := func(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }
	manifest := strings.NewReplacer(
		fmt.Sprintf(`"sha256":"%s","size":%d`, sum(report), len(report)),
		fmt.Sprintf(`"sha256":"%s","size":%d`, sum(forged), len(forged))).Replace(string(contents["manifest.json"]))
	contents["report.html"], contents["manifest.json"] = forged, []byte(manifest)
	var repacked bytes.Buffer
	s := storedzip.NewWriter(&repacked)
	for _, name := range names {
		w, err := s.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(contents[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"again.zip": again.Bytes(), "repacked.zip": repacked.Bytes(), "cut.zip": again.Bytes()[:again.Len()-9]} {
		if err := os.WriteFile(filepath.Join(home, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const unknown, named, nobody = "its carrier may have repacked it", "of the log names this manifest", "no event of the log names the manifest"
	key, other := " --key "+red.LogKey, " --key "+blue.LogKey
	for _, step := range []struct {
		email, args string
		exit        int
		want        string
	}{
		{"", "honest.zip" + key, 0, unknown},
		{"", "honest.zip" + key + " --manifest " + hex.EncodeToString(digest[:]), 0, "the manifest has the digest that was given"},
		{"ops@red.example", "honest.zip" + key + " --url " + p.main, 0, named},
		{"", "again.zip" + key, 0, unknown},
		{"ops@red.example", "again.zip" + key + " --url " + p.main, 0, named},
		{"", "folder" + key, 0, unknown},
		{"ops@red.example", "folder" + key + " --url " + p.main, 0, named},
		{"", "cut.zip" + key, 2, "the files of the pack can't be read"},
		{"", "repacked.zip" + key, 0, unknown},
		{"", "repacked.zip" + key + " --manifest " + hex.EncodeToString(digest[:]), 1, "another manifest than was asked for"},
		{"ops@red.example", "repacked.zip" + key + " --url " + p.main, 2, nobody},
		{"ops@blue.example", "honest.zip" + key + " --url " + p.main, 2, nobody},
		{"ops@red.example", "honest.zip" + other + " --url " + p.main, 2, "signed by the key"},
		{"", "honest.zip" + key + " --url " + p.main, 2, "not signed in"},
	} {
		args := strings.Fields("verify " + step.args)
		args[1] = filepath.Join(home, args[1])
		out, exit := aps(step.email, args...)
		if exit != step.exit || !strings.Contains(out, step.want) || step.want != unknown && strings.Contains(out, unknown) && exit == 0 {
			t.Errorf("%s by %q: status %d, want %d: %s", step.args, step.email, exit, step.exit, out)
		}
	}
}
