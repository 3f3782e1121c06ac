package log_test

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive"
	"github.com/agentledger/agentledger/storage/archive/objects"
	"github.com/agentledger/agentledger/storage/pebblestore"
)

// archived returns an engine with an archive in a folder, and how to archive all old events.
func archived(t *testing.T) (engine storage.Engine, folder string, move func()) {
	t.Helper()
	inner, err := pebblestore.Open(pebblestore.Options{Dir: "data", FS: vfs.NewMem(), CacheBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	folder = filepath.Join(t.TempDir(), "objects")
	kept, err := objects.NewFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	a, err := archive.New(archive.Options{Engine: inner, Objects: kept, Logger: slog.New(slog.DiscardHandler),
		Clock: func() time.Time { return time.Now().Add(1000 * 24 * time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	return a, folder, func() {
		t.Helper()
		if err := a.Pass(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// The background re-verification of archived events reads no object. fsck reads all.
func TestReverifyArchived(t *testing.T) {
	engine, folder, move := archived(t)
	w := newWorld(t, engine)
	w.burst(600, "e")
	move()
	lost := 0
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() == "0000000000000001" {
			lost++
			err = os.Remove(path)
		}
		return err
	})
	if err != nil || lost != 2 {
		t.Fatalf("removed %d objects, %v", lost, err)
	}
	w.reverify(func() bool { return w.reverified(red).To == 600 && w.reverified(blue).To == 600 })
	if f := w.state(red).Fault(); f.Level != log.Healthy {
		t.Errorf("got fault %+v", f)
	}
	if err := w.ledgers.Close(); err != nil {
		t.Fatal(err)
	}
	anchors, err := anchor.OpenReadOnly(w.anchors)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[id.Tenant]int)
	_, err = audit.Fsck(t.Context(), engine, w.keyring, anchors, func(f audit.Finding) {
		found[f.Tenant]++
		if !strings.HasPrefix(f.Place, "envelope ") && !strings.HasPrefix(f.Place, "record ") {
			t.Errorf("a fault that is not there: %v", f)
		}
	})
	if err != nil || found[red] < 256 || found[blue] < 256 {
		t.Errorf("fsck: got %v, %v, want a fault of each event of the lost objects", found, err)
	}
}
