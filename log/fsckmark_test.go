package log_test

import (
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/log/audit/markfile"
	"github.com/agentledger/agentledger/storage"
)

// endingProgress is a run that ends at a mark of the red organization.
type endingProgress struct {
	audit.Progress
	left int
}

var errEnded = errors.New("the run was ended")

func (p *endingProgress) Note(o id.Origin, m audit.Mark) error {
	if o == ledgertest.Genesis(red).Origin {
		if p.left--; p.left < 0 {
			return errEnded
		}
	}
	return p.Progress.Note(o, m)
}

// resumed runs fsck with marks after each hundred events.
func (w *world) resumed(store *watchedStore, p audit.Progress) (found []audit.Finding, err error) {
	_, err = audit.ResumeFsck(w.t.Context(), store, w.keyring, nil, audit.Resume{Progress: p, Stretch: 100},
		func(f audit.Finding) { found = append(found, f) })
	return found, err
}

// An fsck that was ended goes on behind its marks, and finds what one run finds.
func TestFsckGoesOn(t *testing.T) {
	store := newWatchedStore()
	w := filled(t, store, 1000, 250)
	store.change = func(tenant id.Tenant, e *storage.Event) {
		if tenant == red && (e.Index == 250 || e.Index == 777) {
			e.Envelope = slices.Clone(e.Envelope)
			e.Envelope[len(e.Envelope)-3] ^= 1
		}
	}
	want := w.fsck(store)
	if len(want) != 2 {
		t.Fatalf("in one run: got %v, want two findings", want)
	}
	path := filepath.Join(t.TempDir(), "progress.json")
	open := func() *markfile.File {
		t.Helper()
		f, err := markfile.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first := open()
	if _, err := w.resumed(store, &endingProgress{first, 5}); !errors.Is(err, errEnded) {
		t.Fatalf("got %v, want an end", err)
	}
	if err := first.Keep(); err != nil {
		t.Fatal(err)
	}
	clear(store.read)
	again := open()
	got, err := w.resumed(store, again)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	// Fewer than those behind the mark are never enough, and a look at the event before it is none.
	if store.read[red] < 500 || store.read[red] > 510 {
		t.Errorf("read %d events of 1,000, want the 500 behind the mark", store.read[red])
	}
	if err := errors.Join(again.Remove(), again.Remove()); err != nil {
		t.Error(err)
	}
	clear(store.read)
	if got, err := w.resumed(store, open()); err != nil || !reflect.DeepEqual(got, want) || store.read[red] < 1000 {
		t.Errorf("anew: got %v, %v, %d events", got, err, store.read[red])
	}
}

// A mark of other events than those of the store is of no use.
func TestMarkOfAnotherStore(t *testing.T) {
	store := newWatchedStore()
	w := filled(t, store, 300, 300)
	marks, err := markfile.Open(filepath.Join(t.TempDir(), "progress.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []audit.Mark{{Size: 200, Root: id.Hash{1}}, {Size: 301}} {
		if err := marks.Note(ledgertest.Genesis(red).Origin, m); err != nil {
			t.Fatal(err)
		}
		clear(store.read)
		if got, err := w.resumed(store, marks); err != nil || len(got) != 0 || store.read[red] < 300 {
			t.Errorf("mark %v: got %v, %v, %d events", m, got, err, store.read[red])
		}
	}
}
