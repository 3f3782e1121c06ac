package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// One flipped bit in what a stopped server left is never passed over by fsck:
// it reports a fault (1) or refuses the store (2). What was written last is in
// the engine's journal at first, and in its tables once a server has opened the
// store again: fsck itself leaves it as it is.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, 30)
	checkDamage(t, dir, "db/*.log")
	if out, exit := command(t, "agentledger", "fsck", "--data", dir); exit != 0 {
		t.Fatalf("exit %d\n%s", exit, out)
	}
	startProcess(t, dir).terminate()
	checkDamage(t, dir, "db/*.sst")
	checkDamage(t, dir, "db/MANIFEST-*")
	checkDamage(t, dir, "anchors/anchors.journal")
}

// fill makes a data directory with two organizations and n events of each.
func fill(t *testing.T, dir string, n int) {
	t.Helper()
	p := startProcess(t, dir)
	for _, slug := range []string{"red", "blue"} {
		w, err := newWorker(p.main, p.found(t.Context(), slug, nil), client.Retry{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			envelope, err := w.signer.SignEvent(client.Event{EventID: id.Event(fmt.Sprint("e-", i)), TraceID: "t", ActionKind: "tool_call"})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.sendEnvelope(t.Context(), envelope); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.terminate()
}

// flips is how many bits of a file are flipped, one at a time.
const flips = 8

// checkDamage flips bits of the newest file of that name, each in a copy of the
// data directory. The last eighth of a file is left out: tables have filters
// there, without which they are only slower.
func checkDamage(t *testing.T, dir, pattern string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	name, err := filepath.Rel(dir, slices.Max(files)) // they are numbered
	if err != nil {
		t.Fatal(err)
	}
	for i := range flips {
		other := t.TempDir()
		err := os.CopyFS(other, os.DirFS(dir))
		if err == nil { // a copy has ordinary permissions, which are refused
			err = os.Chmod(filepath.Join(other, "master.key"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		at := flipBit(t, filepath.Join(other, name), i)
		out, exit := command(t, "agentledger", "fsck", "--data", other, "--log-level", "error")
		if exit != exitFound && exit != exitError || strings.Contains(out, " 0 faults") {
			t.Errorf("%s, byte %d: exit %d\n%s", name, at, exit, out)
		}
	}
}

// flipBit flips a bit of the i-th of the places in a file.
func flipBit(t *testing.T, file string, i int) (at int) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at = len(b) * 7 / 8 * i / flips
	b[at] ^= 1 << (i % 8)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}
