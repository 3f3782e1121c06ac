package sums_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/tools/release/sums"
)

// writeRelease makes a signed folder of two files and returns it with its key.
func writeRelease(t *testing.T) (dir string, key tlog.SignerKey) {
	t.Helper()
	dir = t.TempDir()
	key, err := tlog.NewSignerKey(sums.KeyName, edkey.NewPrivate())
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "b", "second")
	writeFile(t, dir, "a", "first")
	list, err := sums.Compute(dir)
	if err != nil {
		t.Fatal(err)
	}
	note, err := key.SignNote(list)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, sums.List, list)
	writeFile(t, dir, sums.Note, string(note.Bytes()))
	return dir, key
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCompute(t *testing.T) {
	dir, _ := writeRelease(t)
	got, err := sums.Compute(dir)
	want := "a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e  a\n" +
		"16367aacb67a4a017c8da8ab95682ccb390863780f7114dda0a0e0c55644c7c4  b\n"
	if err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestVerify(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(dir string)
		found  bool
	}{
		"as it was signed": {func(string) {}, false},
		"a changed file":   {func(dir string) { writeFile(t, dir, "a", "other") }, true},
		"another file":     {func(dir string) { writeFile(t, dir, "c", "more") }, true},
		"a missing file":   {func(dir string) { _ = os.Remove(filepath.Join(dir, "b")) }, true},
		"no note":          {func(dir string) { writeFile(t, dir, sums.Note, "text\n") }, true},
	} {
		dir, key := writeRelease(t)
		tc.change(dir)
		if err := sums.Verify(dir, key.Verifier().String()); errors.Is(err, sums.ErrFound) != tc.found || err != nil && !tc.found {
			t.Errorf("%s: got %v", name, err)
		}
	}
	dir, _ := writeRelease(t)
	_, other := writeRelease(t)
	if err := sums.Verify(dir, other.Verifier().String()); !errors.Is(err, sums.ErrFound) {
		t.Errorf("another key: got %v", err)
	}
}
