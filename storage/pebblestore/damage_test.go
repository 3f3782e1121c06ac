package pebblestore_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
)

// Damage of a table is one line, in the error and in the log, without a stack trace. A read-only store reports its
// format like any other.
func TestDamagedTableIsOneLine(t *testing.T) {
	fs := vfs.NewMem()
	e := open(t, pebblestore.Options{Dir: "data", FS: fs})
	w := newWriter(1)
	wantAll(t, e.Append([]storage.Batch{heavy(w.next(100))}).Wait(), nil)
	if err := errors.Join(e.Compact(t.Context()), e.Close()); err != nil {
		t.Fatal(err)
	}
	for name := range files(t, fs, "data") {
		if strings.HasSuffix(name, ".sst") {
			table := readFile(t, fs, "data/"+name)
			table[len(table)/2] ^= 1 // in an event; one bit, which Pebble finds at once
			writeFile(t, fs, "data/"+name, table)
		}
	}
	var out bytes.Buffer
	e = open(t, pebblestore.Options{Dir: "data", FS: fs, ReadOnly: true,
		Logger: slog.New(slog.NewTextHandler(&out, nil))})
	defer e.Close()
	read := func() (found error) {
		for _, err := range e.Events(t.Context(), 1, 0, 100, storage.FieldRecord|storage.FieldEnvelope) {
			if found == nil {
				found = err
			}
		}
		return found
	}
	found := read()
	if !errors.Is(found, storage.ErrCorrupt) || strings.Contains(found.Error(), "\n") {
		t.Errorf("got %q, want one line and %v", found, storage.ErrCorrupt)
	}
	if got := out.String(); strings.Count(got, "damaged data") != 1 || strings.Contains(got, "goroutine") ||
		strings.Contains(got, "stack") || !strings.Contains(got, ".sst") || !strings.Contains(got, "run agentledger fsck") {
		t.Errorf("logged: %s", got)
	}
	if again := read(); again == nil || again.Error() != found.Error() {
		t.Errorf("the second time: got %v, want %v", again, found)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(e.Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if strings.HasSuffix(family.GetName(), "_store_format") && family.GetMetric()[0].GetGauge().GetValue() != 1 {
			t.Errorf("got %v, want 1", family)
		}
	}
}
