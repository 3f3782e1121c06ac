package archive_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive"
)

// Objects that differ from the written ones are reported as damage, and never returned as texts. Other bundles and the
// other organization can still be read.
func TestDamage(t *testing.T) {
	codec, err := archive.NewCodec()
	if err != nil {
		t.Fatal(err)
	}
	name, next, others := archive.ObjectName(red, 0), archive.ObjectName(red, 1), archive.ObjectName(blue, 0)
	forge := func(change func(*archive.Texts)) func(*memory) {
		return func(m *memory) {
			texts, err := codec.Decode(m.get(name), red, 0, width, archive.MaxTexts)
			if err != nil {
				t.Fatal(err)
			}
			change(texts)
			m.set(name, codec.Encode(texts))
		}
	}
	for step, damage := range map[string]func(*memory){
		"gone":                  func(m *memory) { _ = m.Delete(t.Context(), name) },
		"empty":                 func(m *memory) { m.set(name, []byte{}) },
		"another form":          func(m *memory) { m.set(name, append([]byte{2}, m.get(name)[1:]...)) },
		"of another bundle":     func(m *memory) { m.set(name, m.get(next)) },
		"of another tenant":     func(m *memory) { m.set(name, m.get(others)) },
		"record changed":        forge(func(b *archive.Texts) { b.Events[1].Record = append([]byte("x"), b.Events[1].Record...) }),
		"record of another":     forge(func(b *archive.Texts) { b.Events[1].Record = b.Events[2].Record }),
		"envelope changed":      forge(func(b *archive.Texts) { b.Events[2].Envelope = []byte("secret 9") }),
		"envelope of a sibling": forge(func(b *archive.Texts) { b.Events[2].Envelope = b.Events[3].Envelope }),
		"envelope gone":         forge(func(b *archive.Texts) { b.Events[2].Envelope = nil }),
		"longer than its texts": forge(func(b *archive.Texts) { b.Events[3].Envelope = make([]byte, 10_000) }),
		"an event less":         forge(func(b *archive.Texts) { b.Events = b.Events[1:] }),
	} {
		w := newWorld(t, openPebble(t))
		w.add(red, 2*width)
		w.add(blue, width)
		w.pass()
		damage(w.objects)
		for _, of := range []storage.Fields{storage.FieldRecord, storage.FieldEnvelope, both} {
			err := w.readError(red, 2, of)
			if !errors.Is(err, storage.ErrCorrupt) {
				t.Errorf("%s: got %v, want %v", step, err, storage.ErrCorrupt)
			}
			if f := fault.Of(err); f.Kind != fault.Unavailable || f.Code != "archive_damaged" {
				t.Errorf("%s: got kind %d and code %q, want an unavailable text", step, f.Kind, f.Code)
			}
		}
		if _, err := w.EventsAt(t.Context(), red, []id.Index{2}, both); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("%s: apart: got %v, want %v", step, err, storage.ErrCorrupt)
		}
		if err := w.readError(red, 2, 0); err != nil {
			t.Errorf("%s: entry: %v", step, err)
		}
		if err := w.readError(red, width, both); err != nil {
			t.Errorf("%s: the bundle behind it: %v", step, err)
		}
		w.check(blue, step)
	}
}

// Each byte of an object matters, and so does its length.
func TestDamagedBytes(t *testing.T) {
	w := newWorld(t, openPebble(t))
	w.add(red, width)
	w.add(blue, width)
	w.pass()
	name := archive.ObjectName(red, 0)
	good := w.objects.get(name)
	for n := range good {
		bad := bytes.Clone(good)
		bad[n] ^= 1
		for _, object := range [][]byte{bad, good[:n], append(slices.Clone(good), good[n])} {
			w.objects.set(name, object)
			if err := w.readError(red, 0, both); !errors.Is(err, storage.ErrCorrupt) {
				t.Fatalf("byte %d: got %v, want %v", n, err, storage.ErrCorrupt)
			}
		}
	}
	w.check(blue, "the other organization")
	w.objects.set(name, good)
	w.check(red, "the object is back")
}

// An older version of an object contains envelopes that were erased since. They are not returned.
func TestOlderObject(t *testing.T) {
	w := newWorld(t, openPebble(t))
	w.add(red, width)
	w.add(blue, width)
	w.pass()
	name := archive.ObjectName(red, 0)
	older := w.objects.get(name)
	w.add(red, 1, id.Range{Begin: 1, End: 2})
	w.pass()
	if bytes.Equal(older, w.objects.get(name)) {
		t.Fatal("the object is the same")
	}
	w.objects.set(name, older)
	w.restart()
	w.check(red, "an older object")
	w.check(blue, "the other organization")
}

// An object store is the archive of only one store.
func TestOwner(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) archive.Inner) {
		w := newWorld(t, open)
		begun := func() bool {
			begun, err := archive.Begun(t.Context(), w.inner)
			if err != nil {
				t.Fatal(err)
			}
			return begun
		}
		w.add(red, 1)
		w.pass()
		if begun() {
			t.Error("no bundle is archived, and the store needs its archive")
		}
		w.add(red, width)
		w.pass()
		if !begun() {
			t.Error("the store does not need its archive")
		}
		other := newWorld(t, openPebble(t))
		other.objects = w.objects
		other.start(other.inner)
		other.add(red, width)
		other.add(blue, 1)
		if err := other.Pass(t.Context()); !errors.Is(err, archive.ErrOther) {
			t.Errorf("another store's: got %v, want %v", err, archive.ErrOther)
		}
		other.check(red, "another store's")
		w.objects = newMemory()
		w.restart()
		if err := w.CheckOwner(t.Context()); !errors.Is(err, archive.ErrOther) {
			t.Errorf("an empty one: got %v, want %v", err, archive.ErrOther)
		}
		if n := len(w.objects.names()); n != 0 {
			t.Errorf("the refusal left %d objects in it", n)
		}
	})
}

// An archive that was in use is not started again in an empty object store, whether or not it has bundles. It may be
// started after a crash before the identity was written, and after a start without an archive.
func TestLostOwner(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) archive.Inner) {
		w := newWorld(t, open)
		if err := w.CheckOwner(t.Context()); err != nil {
			t.Fatal(err)
		}
		first := w.objects
		lost := func(step string, want error) {
			t.Helper()
			w.objects = newMemory()
			w.restart()
			if err := w.CheckOwner(t.Context()); !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", step, err, want)
			}
			if want == nil {
				return
			}
			if n := len(w.objects.names()); n != 0 {
				t.Errorf("%s: the refusal left %d objects", step, n)
			}
			w.objects = first
			w.restart()
			if err := w.CheckOwner(t.Context()); err != nil {
				t.Errorf("%s: the first object store again: %v", step, err)
			}
		}
		lost("no bundle yet", archive.ErrOther)
		if err := archive.Forget(t.Context(), w.inner); err != nil {
			t.Fatal(err)
		}
		lost("begun elsewhere", nil)
		first = w.objects
		if err := archive.WriteOwner(t.Context(), w.inner, "OLD"); err != nil {
			t.Fatal(err)
		}
		lost("the form of older programs", nil)
		first = w.objects
		w.add(red, 2*width)
		w.add(blue, width)
		w.pass()
		if err := archive.Forget(t.Context(), w.inner); err != nil {
			t.Fatal(err)
		}
		lost("with bundles", archive.ErrOther)
	})
}

// Dropping a tenant also deletes its objects, even if that takes another attempt.
func TestDrop(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) archive.Inner) {
		for _, away := range []bool{false, true} {
			w := newWorld(t, open)
			mark := storage.Record{Kind: "mark", Version: 7}
			w.add(red, 2*width)
			w.add(blue, width)
			change := []storage.Change{{Kind: mark.Kind, Value: []byte("m"), Version: 7}}
			if err := w.Write(t.Context(), red, change); err != nil {
				t.Fatal(err)
			}
			w.pass()
			if err := w.Drop(t.Context(), red, storage.Record{Kind: "mark", Version: 6}); !errors.Is(err, storage.ErrStale) {
				t.Errorf("on another condition: got %v, want %v", err, storage.ErrStale)
			}
			w.pass()
			w.check(red, "not dropped")
			w.objects.leave(away)
			if err := w.Drop(t.Context(), red, mark); err != nil {
				t.Fatal(err)
			}
			w.objects.leave(false)
			if away {
				if len(w.objects.names()) != 4 {
					t.Errorf("the object store was away: got %v", w.objects.names())
				}
				w.restart()
			}
			w.heads[red], w.want[red] = storage.Head{}, nil
			w.add(red, width) // it arrives again
			w.pass()
			want := []string{archive.ObjectName(red, 0), archive.ObjectName(blue, 0), "store"}
			if got := w.objects.names(); !slices.Equal(got, want) {
				t.Errorf("objects: got %v, want %v", got, want)
			}
			w.check(red, "arrived again")
			w.check(blue, "the other organization")
			blueMark := []storage.Change{{Kind: mark.Kind, Value: []byte("m"), Version: 7, If: storage.AnyVersion}}
			for _, tenant := range []id.Tenant{red, blue} { // start the next round again
				if err := w.Write(t.Context(), tenant, blueMark); err != nil {
					t.Fatal(err)
				}
				if err := w.Drop(t.Context(), tenant, mark); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.inner.Close(); err != nil {
				t.Fatal(err)
			}
			open = func(testing.TB) archive.Inner { return nil }
			if !away {
				fresh := openPebble
				if _, pg := w.inner.(interface{ Synchronous() bool }); pg {
					fresh = openPostgres
				}
				open = fresh(t)
			}
		}
	})
}

// Another process drops an organization, which is imported again with other texts. A cached bundle is not mistaken for
// the new one.
func TestDroppedElsewhere(t *testing.T) {
	w := newWorld(t, openPebble(t))
	mark := storage.Record{Kind: "mark", Version: 7}
	w.add(red, width)
	w.add(blue, width)
	if err := w.Write(t.Context(), red, []storage.Change{{Kind: "mark", Value: []byte("m"), Version: 7}}); err != nil {
		t.Fatal(err)
	}
	w.pass()
	w.check(red, "in memory")
	first := w.Engine
	w.start(w.inner) // the other process
	if err := w.Drop(t.Context(), red, mark); err != nil {
		t.Fatal(err)
	}
	w.heads[red], w.want[red], w.weight = storage.Head{}, nil, 3
	w.add(red, width)
	w.pass()
	w.Engine = first
	w.check(red, "arrived again")
	w.check(blue, "the other organization")
}
