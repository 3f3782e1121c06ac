package archive_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive"
)

func TestMove(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) archive.Inner) {
		w := newWorld(t, open)
		w.add(red, 3*width+1)
		w.add(red, width)
		w.add(blue, width-1)
		w.check(red, "before the move")
		w.pass()
		for range 2 {
			if got, want := w.archived(red), 4*width; got != want {
				t.Errorf("red: got %d archived events, want %d", got, want)
			}
			if got := w.archived(blue); got != 0 {
				t.Errorf("blue: got %d archived events, want none of an incomplete bundle", got)
			}
			want := []string{archive.ObjectName(red, 0), archive.ObjectName(red, 1), archive.ObjectName(red, 2),
				archive.ObjectName(red, 3), "store"}
			if got := w.objects.names(); !slices.Equal(got, want) {
				t.Errorf("objects: got %v, want %v", got, want)
			}
			w.check(red, "after the move")
			w.check(blue, "after the move")
			w.restart()
			w.pass()
		}
		for r, err := range w.Partition(t.Context(), red) {
			t.Errorf("record of the archive in the partition: %v, %v", r, err)
		}
	})
}

// A bundle stays until its last event is old enough.
func TestAge(t *testing.T) {
	w := newWorld(t, openPebble(t))
	w.add(red, width)
	o := archive.Options{Engine: w.inner, Objects: w.objects, Check: checkEnvelope}.WithWidth(width)
	received := w.want[red][0].ReceivedAt.Time()
	for _, step := range []struct {
		age  int // seconds
		want int
	}{{99, 0}, {100, width}} {
		o.After = 100e9
		o.Clock = clockAt(received, step.age)
		w.Engine = newEngine(t, o)
		w.pass()
		if got := w.archived(red); got != step.want {
			t.Errorf("after %d seconds: got %d archived events, want %d", step.age, got, step.want)
		}
	}
}

// The bundle with the latest event stays, because a ledger reads that event when it is opened.
func TestNewestStays(t *testing.T) {
	w := newWorld(t, openPebble(t))
	w.add(red, 2*width)
	o := archive.Options{Engine: w.inner, Objects: w.objects, Check: checkEnvelope}.WithWidth(width).KeepNewest()
	w.Engine = newEngine(t, o)
	for _, want := range []int{width, 2 * width} {
		w.pass()
		if got := w.archived(red); got != want {
			t.Errorf("%d events: got %d archived events, want %d", w.heads[red].Size, got, want)
		}
		w.add(red, 1)
	}
	w.check(red, "moved")
}

// A bundle whose texts are too large stays in the engine, and later bundles are moved.
func TestTooLarge(t *testing.T) {
	w := newWorld(t, openPebble(t))
	w.weight = archive.MaxTexts / width
	w.add(red, width)
	w.weight = 0
	w.add(red, width)
	w.add(blue, width)
	w.pass()
	if got := w.archived(red); got != width || w.objects.get(archive.ObjectName(red, 0)) != nil {
		t.Errorf("got %d archived events, want %d", got, width)
	}
	w.add(red, 1, id.Range{Begin: 1, End: 2}, id.Range{Begin: width, End: width + 1})
	if !w.waiting(red) {
		t.Error("the erasure does not wait")
	}
	w.restart()
	w.pass()
	if w.waiting(red) {
		t.Error("the erasure waits")
	}
	w.check(red, "erased")
	w.check(blue, "the other organization")
}

// Columns, and texts that the engine still has, are read without the object store.
func TestReadWithoutObjects(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) archive.Inner) {
		w := newWorld(t, open)
		w.add(red, 2*width+1)
		w.pass()
		w.add(red, 1, id.Range{Begin: 1, End: 2})
		w.objects.leave(true)
		w.restart()
		for name, of := range map[string]storage.Fields{
			"columns": storage.FieldColumns, "local": both | storage.FieldLocal, "local columns": storage.FieldColumns | storage.FieldLocal,
		} {
			n := id.Index(0)
			for e, err := range w.Events(t.Context(), red, 0, storage.NoIndex, of) {
				want := w.want[red][n]
				archived := n < 2*width && of&storage.FieldLocal != 0
				if err != nil || e.ID != want.ID || e.Columns != want.Columns || e.Archived != archived {
					t.Errorf("%s: event %d: got %+v, %v", name, n, e, err)
				}
				n++
			}
			at, err := w.EventsAt(t.Context(), red, []id.Index{1, 2 * width}, of)
			if n != w.heads[red].Size || err != nil || len(at) != 2 || at[0].Columns != w.want[red][1].Columns {
				t.Errorf("%s: got %d events, and %+v, %v", name, n, at, err)
			}
		}
		erased, err := w.EventsAt(t.Context(), red, []id.Index{1}, storage.FieldEnvelope)
		if err != nil || erased[0].ErasedBy != 2*width+1 || erased[0].Archived {
			t.Errorf("the erasure of an event: got %+v, %v", erased, err)
		}
	})
}

// Each write of a move fails, before or after it takes effect, and the process ends there or continues.
func TestMoveFailures(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) archive.Inner) {
		w := newWorld(t, open)
		w.add(blue, 2*width)
		for _, of := range []string{"objects", "engine"} {
			for after := range 2 {
				for restart := range 2 {
					failed := 0
					for w.failMove(of, failed+1, after == 1, restart == 1) {
						failed++
					}
					if want := map[string]int{"objects": 1, "engine": 2}[of]; failed < want { // create; record, drop
						t.Errorf("%d writes of %s failed, want %d or more", failed, of, want)
					}
				}
			}
		}
		w.check(blue, "at the end")
	})
}

// failMove makes the nth write to the objects or to the engine fail, and reports whether there were that many.
func (w *world) failMove(of string, n int, after, restart bool) bool {
	w.t.Helper()
	step := fmt.Sprintf("write %d of %s fails, after it %v, restart %v", n, of, after, restart)
	w.add(red, width)
	healthy := w.inner
	if of == "engine" {
		w.start(&faultyEngine{Inner: healthy, left: n, after: after})
	} else {
		w.objects.failNext(n, after)
	}
	err := w.Pass(w.t.Context())
	w.objects.failNext(0, false)
	w.check(red, step)
	w.inner = healthy
	if restart {
		w.restart()
	} else if of == "engine" {
		w.start(healthy)
	}
	w.check(red, step)
	w.pass()
	if got, want := w.archived(red), len(w.want[red]); got != want {
		w.t.Errorf("%s: got %d archived events, want %d", step, got, want)
	}
	w.check(red, step)
	if err != nil && !errors.Is(err, storage.ErrUnavailable) && !errors.Is(err, storage.ErrUnknown) {
		w.t.Errorf("%s: got %v", step, err)
	}
	return err != nil
}

// A store that was restored to an older state finds objects of a later one.
func TestRestore(t *testing.T) {
	old := newWorld(t, openPebble(t))
	old.add(red, width)
	old.add(blue, width)
	old.pass()
	old.add(red, 2*width)

	// The store continues from here, and then loses all of it.
	w := newWorld(t, openPebble(t))
	w.add(red, width)
	w.add(blue, width)
	w.pass()
	w.add(red, 2*width)
	w.pass()
	w.add(red, 1, id.Range{Begin: width, End: width + 2}, id.Range{End: 1})
	w.pass()
	newer := w.objects.clone()
	newer.set("store", old.objects.get("store"))

	old.objects.objects = newer.objects
	old.start(old.inner)
	old.check(blue, "restored")
	old.pass() // bundles 1 and 2 of red are in the object store, 1 without erased envelopes
	for at := id.Index(1); at < 3*width; at++ {
		if err := old.readError(red, at, both); err != nil {
			t.Errorf("event %d: %v", at, err)
		}
	}
	if err := old.readError(red, 0, both); !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("an event that was erased after the backup: got %v, want %v", err, storage.ErrCorrupt)
	}
	if err := old.readError(red, 0, storage.FieldRecord); err != nil {
		t.Errorf("its record: %v", err)
	}
}
