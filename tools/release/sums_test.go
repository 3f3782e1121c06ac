package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/internal/releasefiles"
)

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCompute(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"b": "second", "a": "first", releasefiles.ListName: "", releasefiles.NoteName: ""} {
		writeFile(t, dir, name, text)
	}
	got, err := computeSums(t.Context(), dir)
	want := "a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e  a\n" +
		"16367aacb67a4a017c8da8ab95682ccb390863780f7114dda0a0e0c55644c7c4  b\n"
	if err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	writeFile(t, dir, "with space", "third")
	if got, err := computeSums(t.Context(), dir); err == nil {
		t.Errorf("a name that can't be checked: got %q", got)
	}
}

// The list that a release writes can be verified by a user.
func TestSignedList(t *testing.T) {
	dir, keyFile := t.TempDir(), filepath.Join(t.TempDir(), "release.key")
	writeFile(t, dir, "a", "first")
	seed := edkey.NewPrivate().Seed()
	if err := os.WriteFile(keyFile, []byte(base64.StdEncoding.EncodeToString(seed[:])+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := readSumsKey(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	list, err := computeSums(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	note, err := key.SignNote(list)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, releasefiles.ListName, list)
	writeFile(t, dir, releasefiles.NoteName, string(note.Bytes()))
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	read, err := releasefiles.ReadList(root)
	if err != nil || read.CheckSignature(key.Verifier()) != nil || len(read.Files) != 1 {
		t.Errorf("got %+v, %v", read, err)
	}
}
