package archive_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive"
)

// local returns the events of a tenant as stored in the engine.
func (w *world) local(t id.Tenant) (all []storage.Event) {
	w.t.Helper()
	for e, err := range w.inner.Events(w.t.Context(), t, 0, storage.NoIndex, both) {
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// DropTexts removes texts and nothing else, whatever rows the events are in, once.
func TestDropTexts(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) archive.Inner) {
		w := newWorld(t, open)
		w.add(red, 40) // some rows of several events
		w.add(red, 1)
		w.add(red, 2, id.Range{Begin: 3, End: 5}, id.Range{Begin: 40, End: 41})
		w.add(blue, 20)
		want := append([]storage.Event(nil), w.want[red]...)
		for _, r := range [][2]id.Index{{2, 4}, {0, 0}, {3, 20}, {39, 42}, {0, 43}} {
			if err := w.inner.DropTexts(t.Context(), red, r[0], r[1]); err != nil {
				t.Fatalf("drop %v: %v", r, err)
			}
			for i := r[0]; i < r[1]; i++ {
				want[i].Record, want[i].Envelope, want[i].Archived = nil, nil, true
			}
			if got := w.local(red); !reflect.DeepEqual(got, want) {
				t.Fatalf("drop %v: got\n%+v\nwant\n%+v", r, got, want)
			}
			if got := w.local(blue); !reflect.DeepEqual(got, w.want[blue]) {
				t.Fatalf("drop %v: the other organization has\n%+v", r, got)
			}
			w.restart()
		}
		w.add(red, 1, id.Range{Begin: 7, End: 9}, id.Range{Begin: 3, End: 4})
		for at, by := range map[id.Index]id.Index{3: 41, 7: 43, 8: 43} { // 3 was erased before
			found, err := w.inner.EventsAt(t.Context(), red, []id.Index{at}, storage.FieldEnvelope)
			if err != nil || found[0].ErasedBy != by || !found[0].Archived {
				t.Errorf("erased after the drop: event %d: got %+v, %v, want erased by %d", at, found, err, by)
			}
		}
		if at, err := w.inner.Lookup(t.Context(), red, []storage.DedupKey{{Text: "event-7"}}); err != nil || at[0] != 7 {
			t.Errorf("look-up: got %v, %v", at, err)
		}
	})
}

func TestDropTextsRefused(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) archive.Inner) {
		w := newWorld(t, open)
		w.add(red, 3)
		w.add(blue, 2)
		const nobody id.Tenant = 999
		for name, drop := range map[string]struct {
			tenant     id.Tenant
			begin, end id.Index
		}{
			"beyond the ledger":    {red, 0, 4},
			"backwards":            {red, 2, 1},
			"of another's length":  {blue, 0, 3},
			"of no ledger":         {nobody, 0, 1},
			"more than MaxErased":  {red, 0, storage.MaxErased + 1},
			"the last of all ones": {red, storage.NoIndex - 1, storage.NoIndex},
		} {
			if err := w.inner.DropTexts(t.Context(), drop.tenant, drop.begin, drop.end); err == nil {
				t.Errorf("%s: dropped", name)
			}
		}
		w.check(red, "refused")
		w.check(blue, "refused")
		if err := w.inner.Close(); err != nil {
			t.Fatal(err)
		}
		if err := w.inner.DropTexts(t.Context(), red, 0, 1); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("closed: got %v, want %v", err, storage.ErrUnavailable)
		}
		w.start(w.open(t))
		w.check(red, "closed")
	})
}

// Appends, erasures and drops of texts of one organization run concurrently.
func TestDropTextsRace(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) archive.Inner) {
		w := newWorld(t, open)
		w.add(red, 64)
		w.add(blue, 1)
		done := make(chan error, 1)
		go func() {
			for i := id.Index(0); i < 64; i += 4 {
				err := w.inner.DropTexts(t.Context(), red, i, i+4)
				for errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrUnknown) {
					err = w.inner.DropTexts(t.Context(), red, i, i+4)
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		for i := range id.Index(64) {
			w.add(red, 1, id.Range{Begin: 63 - i, End: 64 - i})
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for i, e := range w.local(red)[:64] {
			if want := w.want[red][i]; !e.Archived || e.ErasedBy != want.ErasedBy || e.ID != want.ID || e.Columns != want.Columns {
				t.Errorf("event %d: got %+v, want it archived and erased by %d", i, e, want.ErasedBy)
			}
		}
		w.check(blue, "the other organization")
	})
}

// The disk space of moved texts is reclaimed, and nothing else changes.
func TestReclaim(t *testing.T) {
	w := newWorld(t, openPebble(t))
	counted := &reclaims{Inner: w.inner}
	w.start(counted)
	w.weight = 500
	for range 63 {
		w.add(red, width)
	}
	w.add(blue, width)
	w.pass()
	if counted.ranges != nil {
		t.Errorf("63 bundles: reclaimed %v", counted.ranges)
	}
	w.add(red, width)
	w.pass()
	w.pass()
	if want := [][2]id.Index{{0, 64 * width}}; !reflect.DeepEqual(counted.ranges, want) {
		t.Errorf("64 bundles: reclaimed %v, want %v", counted.ranges, want)
	}
	w.check(red, "reclaimed")
	w.check(blue, "the other organization")
	w.inner = counted.Inner
	w.restart()
	w.check(red, "restarted")
}

// reclaims records the ranges that are reclaimed.
type reclaims struct {
	archive.Inner
	ranges [][2]id.Index
}

func (r *reclaims) ReclaimTexts(ctx context.Context, t id.Tenant, begin, end id.Index) error {
	r.ranges = append(r.ranges, [2]id.Index{begin, end})
	return r.Inner.(interface {
		ReclaimTexts(ctx context.Context, t id.Tenant, begin, end id.Index) error
	}).ReclaimTexts(ctx, t, begin, end)
}
