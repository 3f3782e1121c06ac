package log_test

import (
	"errors"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log/audit"
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
	open := func() *audit.MarkFile {
		t.Helper()
		f, err := audit.OpenMarkFile(path)
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

// keptProgress has one mark, and refuses to note another.
type keptProgress struct{ mark audit.Mark }

func (p *keptProgress) Find(o id.Origin) (audit.Mark, bool) {
	return p.mark, o == ledgertest.Genesis(red).Origin
}

func (p *keptProgress) Note(id.Origin, audit.Mark) error { return nil }

// A mark stays as it was noted, because others may read it meanwhile. One without counts is none of a whole ledger.
func TestMarkIsLeftAlone(t *testing.T) {
	store := newWatchedStore()
	w := filled(t, store, 300, 1)
	marks, err := audit.OpenMarkFile(filepath.Join(t.TempDir(), "progress.json"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.resumed(store, &endingProgress{marks, 1}); !errors.Is(err, errEnded) {
		t.Fatal(err)
	}
	mark, ok := marks.Find(ledgertest.Genesis(red).Origin)
	if !ok || mark.Size != 100 || len(mark.Counted) != 1 {
		t.Fatalf("got %+v, %v", mark, ok)
	}
	p := &keptProgress{mark}
	want := maps.Clone(mark.Counted)
	if got, err := w.resumed(store, p); err != nil || len(got) != 0 || !maps.Equal(p.mark.Counted, want) {
		t.Errorf("got %v, %v, counted %v, want %v", got, err, p.mark.Counted, want)
	}
	p.mark.Counted = nil
	if got, err := w.resumed(store, p); err != nil || len(got) != 1 || !strings.HasPrefix(got[0].Place, "counter") {
		t.Errorf("without counts: got %v, %v", got, err)
	}
}

// A mark of other events than those of the store is of no use.
func TestMarkOfAnotherStore(t *testing.T) {
	store := newWatchedStore()
	w := filled(t, store, 300, 300)
	marks, err := audit.OpenMarkFile(filepath.Join(t.TempDir(), "progress.json"))
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
