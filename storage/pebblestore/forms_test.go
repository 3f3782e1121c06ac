package pebblestore

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

const both = storage.FieldRecord | storage.FieldEnvelope

// testEvents are events of all forms.
func testEvents() map[string]storage.Event {
	without, erased, short, empty, long := testEvent(), testEvent(), testEvent(), testEvent(), testEvent()
	erased.ErasedBy = 1 << 40
	archived, neither := testEvent(), testEvent()
	archived.Archived, archived.Record = true, nil
	neither.Archived, neither.Record, neither.ErasedBy = true, nil, 1<<40
	short.Envelope, empty.Envelope, long.Envelope = []byte("{}"), []byte{}, make([]byte, togetherBytes+1)
	return map[string]storage.Event{"no envelope": without, "erased": erased, "archived": archived, "archived and erased": neither, "short envelope": short, "empty envelope": empty, "long envelope": long}
}

func TestParseEvent(t *testing.T) {
	for name, e := range testEvents() {
		v := appendEvent(nil, &e)
		if len(v) > eventLen(&e) {
			t.Errorf("%s: got %d bytes, want at most %d", name, len(v), eventLen(&e))
		}
		for parts, want := range map[storage.Fields]storage.Event{
			storage.FieldRecord:   {ID: e.ID, Columns: e.Columns, Record: e.Record, Archived: e.Archived},
			storage.FieldColumns:  {ID: e.ID, Columns: e.Columns, Archived: e.Archived},
			storage.FieldEnvelope: {Envelope: e.Envelope, ErasedBy: e.ErasedBy, Archived: e.Archived},
			both:                  e,
		} {
			if !together(&e) {
				want.Envelope = nil // under its own key, or nowhere
			}
			var got storage.Event
			here, err := parseEvent(v, parts, &got)
			if err != nil || here != (together(&e) || e.ErasedBy != 0 || e.Archived) || !reflect.DeepEqual(got, want) {
				t.Errorf("%s, parts %d: got %+v, %v, %v, want %+v", name, parts, got, here, err, want)
			}
		}
	}
}

func TestParseEventMutations(t *testing.T) {
	for name, e := range testEvents() {
		good := appendEvent(nil, &e)
		tail := len(e.Record) // of form1: ends anywhere
		if together(&e) {
			tail = len(e.Envelope)
		}
		var got storage.Event
		for n := range len(good) - tail {
			if _, err := parseEvent(good[:n], both, &got); !errors.Is(err, storage.ErrCorrupt) {
				t.Errorf("%s cut to %d bytes: got %v, want %v", name, n, err, storage.ErrCorrupt)
			}
		}
		other := append([]byte{form4 + 1}, good[1:]...)
		if _, err := parseEvent(other, both, &got); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("%s of another form: got %v, want %v", name, err, storage.ErrCorrupt)
		}
	}
}

func TestParseHead(t *testing.T) {
	bare := head{Head: storage.Head{Size: 1 << 40, Root: id.Hash{1}, Last: id.Hash{2}, LastReceived: -3, Epoch: 4, ConfigVersion: 5}}
	named, nameless := bare, bare
	named.held, named.holding = storage.Counter{Name: "events/2026-01", Value: math.MaxUint64}, true
	nameless.holding = true
	for name, want := range map[string]head{"bare": bare, "with a counter": named, "with a counter without a name": nameless} {
		v := appendHead(nil, &want)
		if got, err := parseStoredHead(v); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, want)
		}
		least := headLen
		if want.holding {
			least += 8
		}
		for n := range least {
			if _, err := parseStoredHead(v[:n]); !errors.Is(err, storage.ErrCorrupt) {
				t.Errorf("%s cut to %d bytes: got %v, want %v", name, n, err, storage.ErrCorrupt)
			}
		}
	}
	long := append(appendHead(nil, &bare), 0)
	if _, err := parseStoredHead(long); !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("a byte more: got %v, want %v", err, storage.ErrCorrupt)
	}
}

// TestOlderForms reads a store as older programs wrote it, in which envelopes and counters have their own keys, and
// continues to write to it.
func TestOlderForms(t *testing.T) {
	old := head{Head: storage.Head{Size: 3, Root: id.Hash{1}}}
	e := damaged(t, func(b *pebble.Batch) {
		_ = b.Set(headKey(1), appendHead(nil, &old), nil)
		_ = b.Set(appendCounterKey(nil, 1, "n"), []byte{0, 0, 0, 0, 0, 0, 0, 9}, nil)
		for i := range id.Index(3) {
			event := testEvent()
			event.ID = id.Event(rune('a' + i))
			_ = b.Set(appendIndexKey(nil, 1, familyRecord, i), appendEvent(nil, &event), nil)
			if i != 1 { // erased
				_ = b.Set(appendIndexKey(nil, 1, familyEnvelope, i), []byte{'0' + byte(i)}, nil)
			}
		}
	})
	wantCounter(t, e, "n", 9)
	next := storage.Batch{
		Tenant: 1, Expect: old.Head, Head: storage.Head{Size: 4, Root: id.Hash{2}}, Counters: []storage.Counter{{Name: "m", Value: 1}},
		Events: []storage.Event{{Index: 3, ID: "d", Record: []byte("r"), Envelope: []byte("3")}},
	}
	if err := e.Append([]storage.Batch{next}).Wait()[0]; err != nil {
		t.Fatal(err)
	}
	wantCounter(t, e, "n", 9)
	wantCounter(t, e, "m", 1)
	var envelopes []string
	for event, err := range e.Events(t.Context(), 1, 0, 4, storage.FieldEnvelope) {
		one, oneErr := e.readEventAt(1, event.Index, storage.FieldEnvelope)
		if err != nil || oneErr != nil || string(one.Envelope) != string(event.Envelope) {
			t.Fatalf("event %d: %q, %v and %q, %v", event.Index, event.Envelope, err, one.Envelope, oneErr)
		}
		envelopes = append(envelopes, string(event.Envelope))
	}
	if want := []string{"0", "", "2", "3"}; !reflect.DeepEqual(envelopes, want) {
		t.Errorf("got %q, want %q", envelopes, want)
	}
}

func wantCounter(t *testing.T, e *Engine, name string, want uint64) {
	t.Helper()
	if got, err := e.Counters(t.Context(), 1, []string{name}); err != nil || got[0] != want {
		t.Errorf("counter %s: got %v, %v, want %d", name, got, err, want)
	}
}

// TestHeldCounter moves counters into the head and out of it.
func TestHeldCounter(t *testing.T) {
	e := damaged(t, func(*pebble.Batch) {})
	at := storage.Head{Size: 3, Root: id.Hash{1}}
	want := map[string]uint64{"n": 1}
	for i, counters := range [][]storage.Counter{
		{{Name: "n", Value: 2}}, {{Name: "m", Value: 3}}, {}, {{Name: "n", Value: 4}}, {{Name: "n", Value: 5}, {Name: "m", Value: 6}}, {{Name: "m", Value: 7}},
	} {
		next := at
		next.ConfigVersion++
		if err := e.Append([]storage.Batch{{Tenant: 1, Expect: at, Head: next, Counters: counters}}).Wait()[0]; err != nil {
			t.Fatal(err)
		}
		at = next
		for _, c := range counters {
			want[c.Name] = c.Value
		}
		if i%2 == 1 {
			clear(e.write.heads)
		}
		for name, value := range want {
			wantCounter(t, e, name, value)
		}
	}
}
