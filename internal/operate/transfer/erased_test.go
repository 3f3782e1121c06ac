package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/operate/transfer"
	"github.com/agentledger/agentledger/log"
)

// eraseAll erases all events of an organization that has few.
func (r *resident) eraseAll() {
	r.t.Helper()
	size := r.state(r.Tenant).Size()
	eraser := erasure.EnvelopeEraser{Appender: r.systemEvents, Ledgers: r.ledgers}
	_, err := eraser.Erase(r.t.Context(), r.Tenant, "acc_x", func(context.Context, *log.State) (erasure.Selection, error) {
		return erasure.Selection{Ranges: []id.Range{{End: size}}, Reason: "person_request"}, nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// filesWith returns the files below dir that contain a text.
func filesWith(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// An export after an erasure contains no erased text, even if an earlier export is in its directory. A store that still
// has the texts does not accept an import that says that they are erased.
func TestExportAfterErasure(t *testing.T) {
	here := newHouse(t, model(t), newKeyring(t))
	here.start()
	red, blue := here.found("red", "ann@example.com", 1), here.found("blue", "bob@example.com", 2)
	red.send(30)
	blue.send(30)
	here.stop()
	before := filepath.Join(t.TempDir(), "export")
	here.export(before, "")
	there := newHouse(t, model(t), here.keyring)
	there.imports(before, "red")

	here.start()
	red.eraseAll()
	here.stop()
	here.fsck()
	if err := here.tryExport(before, "red"); !errors.Is(err, transfer.ErrRefused) || !strings.Contains(err.Error(), "since been erased") {
		t.Errorf("into the folder of before: got %v", err)
	}
	anew := filepath.Join(t.TempDir(), "export")
	here.export(anew, "")
	for dir, want := range map[string]bool{before: true, anew: false} {
		if got := len(filesWith(t, dir, string(red.events[1].Payload))) > 0; got != want {
			t.Errorf("%s: has the text: %v, want %v", dir, got, want)
		}
	}
	if len(filesWith(t, anew, string(blue.events[1].Payload))) == 0 {
		t.Error("the other organization's text is gone")
	}
	third := newHouse(t, pebble(t), here.keyring)
	third.imports(anew, "")
	same(t, third.engine, here.engine, red.Tenant)
	same(t, third.engine, here.engine, blue.Tenant)
	third.fsck()
}
