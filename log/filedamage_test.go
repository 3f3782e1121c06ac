package log_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/storage/pebblestore"
)

// A byte of each file of the store is flipped, at several places. Either the
// store does not open, or fsck names what is wrong, or the byte is of no
// consequence and everything is there. Nothing panics.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	var acknowledged []acked
	w, base := installed(t, func(w *world) {
		acknowledged = w.history()
	})
	kinds := map[string]int{}
	for _, name := range files(t, base.disk) {
		whole := readFile(t, base.disk, name)
		kinds[kindOf(name)]++
		for _, at := range places(len(whole)) {
			t.Run(fmt.Sprintf("%s at %d", name, at), func(t *testing.T) {
				disk := base.disk.CrashClone(vfs.CrashCloneCfg{})
				bent := bytes.Clone(whole)
				bent[at] ^= 0x20
				writeFile(t, disk, name, bent)
				w.diagnose(t, disk, base.anchors, acknowledged)
			})
		}
	}
	for _, kind := range []string{"sst", "log", "MANIFEST", "OPTIONS", "marker"} {
		if kinds[kind] == 0 {
			t.Errorf("no file of kind %s among %v", kind, kinds)
		}
	}
}

// history leaves events in tables and in the log.
func (w *world) history() (acknowledged []acked) {
	send := func(prefix string) {
		for i := range 12 {
			name := fmt.Sprint(prefix, i)
			r, err := w.append(red, name)
			if err != nil {
				w.t.Fatal(err)
			}
			acknowledged = append(acknowledged, acked{red, name, r, nil})
		}
	}
	send("table")
	w.ledgers.Close()
	if err := w.store.(*pebblestore.Engine).Close(); err != nil {
		w.t.Fatal(err)
	}
	w.store = openPebble(w.t, w.disk, nil) // which writes the log out to a table
	w.open(log.Options{})
	send("log")
	return acknowledged
}

// diagnose checks that damage does not pass unseen.
func (w *world) diagnose(t *testing.T, disk *vfs.MemFS, journal []byte, acknowledged []acked) {
	t.Helper()
	ended := make(chan struct{})
	broken := func(error) {
		close(ended)
		select {} // the process ends
	}
	opened := make(chan *pebblestore.Engine, 1)
	go func() {
		e, err := pebblestore.Open(pebblestore.Options{Dir: "data", FS: disk, CacheBytes: 1 << 20, OnBroken: broken})
		if err != nil {
			e = nil
		}
		opened <- e
	}()
	var engine *pebblestore.Engine
	select {
	case engine = <-opened:
	case <-ended:
	}
	if engine == nil {
		return // found
	}
	defer engine.Close()
	after := w.on(t, journal)
	anchors, err := anchor.Open(after.anchors)
	if err != nil {
		t.Fatal(err)
	}
	findings := 0
	_, err = audit.Fsck(t.Context(), engine, w.keyring, anchors, func(audit.Finding) { findings++ })
	if firstOf(err, anchors.Close()) != nil || findings > 0 {
		return // found
	}
	after.store = engine
	after.open(log.Options{})
	after.keeps(acknowledged, nil)
	after.ledgers.Close()
}

func files(t *testing.T, fs vfs.FS) []string {
	t.Helper()
	names, err := fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func kindOf(name string) string {
	for _, kind := range []string{"MANIFEST", "OPTIONS", "marker"} {
		if strings.HasPrefix(name, kind) {
			return kind
		}
	}
	_, kind, _ := strings.Cut(name, ".")
	return kind
}

// places are the offsets that are damaged in a file of a length.
func places(length int) (at []int) {
	n := 6
	if drill() {
		n = 200
	}
	for i := range min(n, length) {
		at = append(at, i*length/n)
	}
	if length > 0 {
		at = append(at, length-1)
	}
	return at
}

func readFile(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(fs.PathJoin("data", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t *testing.T, fs vfs.FS, name string, b []byte) {
	t.Helper()
	f, err := fs.Create(fs.PathJoin("data", name), vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// The same with the anchors' journal: no flipped byte freezes a ledger whose
// store is whole.
func TestDamagedAnchors(t *testing.T) {
	t.Parallel()
	w, base := installed(t, func(w *world) { w.mustAppend(red, "a", "b"); w.mustAppend(blue, "a") })
	for at := range len(base.anchors) {
		if !drill() && at%13 != 0 {
			continue
		}
		bent := bytes.Clone(base.anchors)
		bent[at] ^= 1
		after := w.on(t, bent)
		anchors, err := anchor.Open(after.anchors)
		if err != nil {
			continue // found
		}
		anchors.Close()
		engine := openPebble(t, base.disk.CrashClone(vfs.CrashCloneCfg{}), nil)
		after.store = engine
		after.open(log.Options{})
		for _, tenant := range []id.Tenant{red, blue} {
			if f := after.state(tenant).Fault(); f.Level == log.Frozen {
				t.Errorf("byte %d: tenant %d: %+v", at, tenant, f)
			}
		}
		after.ledgers.Close()
		engine.Close()
	}
}
