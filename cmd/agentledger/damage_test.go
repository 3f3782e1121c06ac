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

// fsck detects one flipped bit in the files of a stopped server: it reports a fault (1) or rejects the store (2). The
// latest events are in the engine's journal at first, and in its tables once a server has opened the store again; fsck
// itself does not change that.
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

// fill creates a data directory with two organizations and n events of each.
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

// flips is the number of bits of a file that are flipped, one at a time.
const flips = 8

// checkDamage flips bits of the latest file of that name, each in a copy of the data directory. It skips the last
// eighth of a file, where tables have filters, without which they are only slower.
func checkDamage(t *testing.T, dir, pattern string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	name, err := filepath.Rel(dir, slices.Max(files)) // the names are numbered
	if err != nil {
		t.Fatal(err)
	}
	for i := range flips {
		other := t.TempDir()
		err := os.CopyFS(other, os.DirFS(dir))
		if err == nil { // a copy has ordinary permissions, which are rejected
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

// flipBit flips a bit at position i of a file.
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
