package archive_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive"
)

// holds reports whether an object contains the envelope of an event.
func (w *world) holds(t id.Tenant, at id.Index) bool {
	w.t.Helper()
	codec, err := archive.NewCodec()
	if err != nil {
		w.t.Fatal(err)
	}
	object := w.objects.get(archive.ObjectName(t, at/width))
	if object == nil {
		return false
	}
	const most = 1 << 16 // bytes, which are allocated for each object
	texts, err := codec.Decode(object, t, at/width*width, width, most)
	if err != nil {
		w.t.Fatal(err)
	}
	return bytes.Contains(texts.Events[at%width].Envelope, []byte("secret"))
}

func (w *world) waiting(t id.Tenant) bool {
	w.t.Helper()
	waiting, err := w.ErasuresWaiting(w.t.Context(), t)
	if err != nil {
		w.t.Fatal(err)
	}
	return waiting
}

func TestErasure(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) archive.Inner) {
		w := newWorld(t, open)
		w.add(red, 3*width)
		w.add(blue, 2*width)
		w.add(red, width, id.Range{Begin: 1, End: 3}) // before the move
		w.pass()
		if w.holds(red, 1) || w.holds(red, 2) || !w.holds(red, 0) || !w.holds(red, 3) {
			t.Error("objects do not hold the envelopes that are left, and those alone")
		}
		if w.waiting(red) {
			t.Error("an erasure before the move waits")
		}
		w.check(red, "erased before the move")

		w.add(red, 1, id.Range{Begin: 0, End: 1}, id.Range{Begin: width + 1, End: 2*width + 1}) // after it
		w.check(red, "erased, object not rewritten")
		if !w.waiting(red) || w.waiting(blue) || !w.holds(red, 0) {
			t.Error("the erasure does not wait, or the other organization does")
		}
		w.restart()
		w.check(red, "erased, object not rewritten, restarted")
		w.pass()
		for _, at := range []id.Index{0, width + 1, width + 2, 2*width - 1, 2 * width} {
			if w.holds(red, at) {
				t.Errorf("event %d: its object has the envelope", at)
			}
		}
		if w.waiting(red) || !w.holds(red, 2*width+1) {
			t.Error("the erasure waits, or took more than it said")
		}
		w.check(red, "rewritten")
		w.check(blue, "the other organization")
	})
}

// Each write of a rewrite fails, before or after it takes effect, and the process ends there or continues.
func TestRewriteFailures(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) archive.Inner) {
		w := newWorld(t, open)
		w.add(blue, width)
		for _, of := range []string{"objects", "engine"} {
			for after := range 2 {
				for restart := range 2 {
					w.failRewrite(of, after == 1, restart == 1)
				}
			}
		}
		w.check(blue, "at the end")
	})
}

func (w *world) failRewrite(of string, after, restart bool) {
	w.t.Helper()
	step := fmt.Sprintf("a write of %s fails, after it %v, restart %v", of, after, restart)
	at := w.heads[red].Size
	w.add(red, width)
	w.pass()
	w.add(red, width, id.Range{Begin: at, End: at + 1})
	healthy := w.inner
	if of == "engine" {
		w.start(&faultyEngine{Inner: healthy, left: 1, after: after})
	} else {
		w.objects.failNext(1, after)
	}
	err := w.RewriteErased(w.t.Context(), red)
	if !errors.Is(err, storage.ErrUnavailable) && !errors.Is(err, storage.ErrUnknown) {
		w.t.Errorf("%s: got %v", step, err)
	}
	w.objects.failNext(0, false)
	w.check(red, step)
	if done := of == "engine" && after; w.waiting(red) == done {
		w.t.Errorf("%s: the erasure waits: got %v, want %v", step, !done, done)
	}
	w.start(healthy)
	if restart {
		w.restart()
	}
	w.check(red, step)
	w.pass()
	if w.waiting(red) || w.holds(red, at) || !w.holds(red, at+1) {
		w.t.Errorf("%s: the envelope is there still, or another one went", step)
	}
	w.check(red, step)
}

// An envelope is erased while its bundle is being moved: the object does not keep it.
func TestErasureDuringMove(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) archive.Inner) {
		w := newWorld(t, open)
		w.add(red, width)
		w.add(blue, width-1)
		between := &interrupted{memory: w.objects, before: func() { w.add(red, 1, id.Range{End: 2}) }}
		o := archive.Options{Engine: w.inner, Objects: between, Check: checkEnvelope}.WithWidth(width)
		w.Engine = newEngine(t, o)
		if err := w.Pass(t.Context()); !errors.Is(err, storage.ErrStale) {
			t.Errorf("the move: got %v, want %v", err, storage.ErrStale)
		}
		w.check(red, "interrupted")
		if !w.waiting(red) || w.waiting(blue) || !w.holds(red, 0) {
			t.Error("the object of the move does not hold the envelope, or the erasure does not wait for it")
		}
		w.restart()
		w.objects.leave(true)
		if err := w.RewriteErased(t.Context(), red); !errors.Is(err, storage.ErrUnavailable) || !w.waiting(red) {
			t.Errorf("the object store is away: got %v", err)
		}
		w.objects.leave(false)
		for range 2 {
			if err := w.RewriteErased(t.Context(), red); err != nil {
				t.Fatal(err)
			}
			if w.waiting(red) || w.holds(red, 0) {
				t.Error("the erasure waits, or the object of the move holds its envelope")
			}
		}
		w.pass()
		if got := w.archived(red); got != width {
			t.Errorf("got %d archived events, want %d", got, width)
		}
		if w.holds(red, 0) || w.holds(red, 1) || !w.holds(red, 2) || w.waiting(red) {
			t.Error("the object holds erased envelopes, or lacks others")
		}
		w.check(red, "moved")
		w.check(blue, "the other organization")
	})
}

// If the object store is unavailable, everything that needs no archived text continues.
func TestOutage(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) archive.Inner) {
		w := newWorld(t, open)
		w.add(red, width+1)
		w.add(blue, 1)
		w.pass()
		w.restart()
		w.objects.leave(true)
		w.add(red, width, id.Range{End: 1})
		if err := w.readError(red, 1, both); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("an archived text: got %v, want %v", err, storage.ErrUnavailable)
		}
		if err := w.readError(red, 1, 0); err != nil {
			t.Errorf("an archived entry: %v", err)
		}
		if err := w.readError(red, width, both); err != nil {
			t.Errorf("a text that is not archived: %v", err)
		}
		w.check(blue, "the other organization")
		if err := w.Pass(t.Context()); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("a pass: got %v, want %v", err, storage.ErrUnavailable)
		}
		if got, err := w.Lookup(t.Context(), red, []storage.DedupKey{{Text: "event-1"}}); err != nil || got[0] != 1 {
			t.Errorf("look-up: got %v, %v", got, err)
		}
		w.objects.leave(false)
		w.pass()
		w.check(red, "the store is back")
	})
}
