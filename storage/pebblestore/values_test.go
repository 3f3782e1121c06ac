package pebblestore

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

func testEvent() storage.Event {
	return storage.Event{
		ID: "e", Record: []byte(`{"v":1}`),
		Columns: storage.Columns{ReceivedAt: -1, Agent: "agent", Trace: id.Trace(strings.Repeat("t", 200)), Tool: "", ActionKind: "tool_call", Effective: id.Deny, Disclosure: id.DiscloseFull},
	}
}

func FuzzParseEvent(f *testing.F) {
	for _, e := range testEvents() {
		f.Add(appendEvent(nil, &e))
	}
	f.Add([]byte{form3, 0, 1, 1, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{form1, 0, 1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, v []byte) {
		var first, second storage.Event
		if _, err := parseEvent(v, both, &first); err != nil || len(first.Envelope) > togetherBytes {
			return
		}
		if _, err := parseEvent(appendEvent(nil, &first), both, &second); err != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("got %+v, %v, want %+v", second, err, first)
		}
	})
}

func FuzzParseStored(f *testing.F) {
	f.Add(appendStored(nil, 1<<40, []byte("value")))
	f.Add([]byte{form1, 0x80})
	f.Fuzz(func(t *testing.T, v []byte) {
		version, value, err := parseStored(v)
		if err != nil {
			return
		}
		again, same, err := parseStored(appendStored(nil, version, value))
		if err != nil || again != version || string(same) != string(value) {
			t.Errorf("got %d, %q, %v, want %d, %q", again, same, err, version, value)
		}
	})
}

// damaged opens a store with a ledger of three events, tiles, two counters and a record, and lets damage write to the
// underlying store.
func damaged(t *testing.T, damage func(*pebble.Batch)) *Engine {
	t.Helper()
	e, err := Open(Options{Dir: "data", FS: vfs.NewMem(), CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	part := storage.Batch{Tenant: 1, Head: storage.Head{Size: 3, Root: id.Hash{1}}}
	for i := range id.Index(3) {
		event := testEvent()
		event.Index, event.ID, event.Envelope = i, id.Event(rune('a'+i)), []byte("{}")
		part.Events = append(part.Events, event)
		part.Tiles = append(part.Tiles, storage.Tile{Index: uint64(i), Hashes: make([]byte, storage.TileSize)})
	}
	part.Counters = []storage.Counter{{Name: "n", Value: 1}, {Name: "held", Value: 2}}
	part.Changes = []storage.Change{{Kind: "kind", Key: "key", Value: []byte("value")}}
	if err := e.Append([]storage.Batch{part}).Wait()[0]; err != nil {
		t.Fatal(err)
	}
	b := e.db.NewBatch()
	damage(b)
	if err := e.db.Apply(b, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := e.db.Flush(); err != nil { // names are looked up in tables
		t.Fatal(err)
	}
	clear(e.write.heads)
	e.recent.drop(math.MaxUint64)
	return e
}

// readAll reads everything through the contract and returns the first error.
func readAll(t *testing.T, e *Engine) error {
	_, headErr := e.Head(t.Context(), 1)
	var eventErr error
	for _, err := range e.Events(t.Context(), 1, 0, 3, storage.FieldRecord|storage.FieldEnvelope) {
		eventErr = errors.Join(eventErr, err)
	}
	for _, f := range e.Entries(t.Context(), []storage.Position{{Tenant: 1}, {Tenant: 1, Index: 1}, {Tenant: 1, Index: 2}}) {
		if !errors.Is(f.Err, storage.ErrNotFound) {
			eventErr = errors.Join(eventErr, f.Err)
		}
	}
	_, nameErr := e.Lookup(t.Context(), 1, []storage.DedupKey{{Text: "a"}})
	var tileErr error
	for index := range uint64(3) {
		_, err := e.TileHashes(t.Context(), 1, 0, index, 0, 256)
		tileErr = errors.Join(tileErr, err)
	}
	_, rootErr := e.TileRoots(t.Context(), 1, 0, 0, 3)
	_, counterErr := e.Counters(t.Context(), 1, []string{"n"})
	_, getErr := e.Get(t.Context(), 1, "kind", "key")
	_, scanErr := e.Scan(t.Context(), 1, "kind", "", "", 9)
	return errors.Join(headErr, eventErr, nameErr, tileErr, rootErr, counterErr, getErr, scanErr)
}

func TestDamagedValues(t *testing.T) {
	set := func(key []byte, value string) func(*pebble.Batch) {
		return func(b *pebble.Batch) { _ = b.Set(key, []byte(value), nil) }
	}
	cut := func(key []byte) func(*pebble.Batch) {
		return func(b *pebble.Batch) { _ = b.Delete(key, nil) }
	}
	entry, record := appendIndexKey(nil, 1, familyEntry, 1), appendIndexKey(nil, 1, familyRecord, 1)
	name := appendNameKey(nil, 1, storage.DedupKey{Text: "a"})
	root := appendTileKey(nil, 1, familyTileRoot, 0, 1)
	tests := map[string]func(*pebble.Batch){
		"empty head":               set(headKey(1), ""),
		"head of another form":     set(headKey(1), string(append([]byte{9}, make([]byte, headLen-1)...))),
		"head without its counter": set(headKey(1), string(append([]byte{form2}, make([]byte, headLen+6)...))),
		"short entry":              set(entry, "short"),
		"first entry missing":      cut(appendIndexKey(nil, 1, familyEntry, 0)),
		"entry missing":            cut(entry),
		"last entry missing":       cut(appendIndexKey(nil, 1, familyEntry, 2)),
		"record missing":           cut(record),
		"last record missing":      cut(appendIndexKey(nil, 1, familyRecord, 2)),
		"empty record":             set(record, ""),
		"long entry key":           set(append(appendIndexKey(nil, 1, familyEntry, 0), 0), strings.Repeat("x", entryLen)),
		"name without an index":    set(name, ""),
		"name with a reserved one": set(name, strings.Repeat("\xff", 8)),
		"short tile":               set(appendTileKey(nil, 1, familyTile, 0, 1), "short"),
		"long root":                set(root, strings.Repeat("x", 33)),
		"long root key":            set(append(root, 0), strings.Repeat("x", 32)),
		"short counter":            set(appendCounterKey(nil, 1, "n"), "1234567"),
		"empty stored record":      set(appendStoredKey(nil, 1, "kind", "key"), ""),
		"stored without version":   set(appendStoredKey(nil, 1, "kind", "key"), "\x01\x00x"),
	}
	for fault, damage := range tests {
		t.Run(fault, func(t *testing.T) {
			if err := readAll(t, damaged(t, damage)); !errors.Is(err, storage.ErrCorrupt) {
				t.Errorf("got %v, want %v", err, storage.ErrCorrupt)
			}
		})
	}
	if err := readAll(t, damaged(t, func(*pebble.Batch) {})); err != nil {
		t.Errorf("without damage: got %v", err)
	}
}

// TestDamagedAppend: what the checks of an append read can also be damaged.
func TestDamagedAppend(t *testing.T) {
	next := storage.Batch{
		Tenant: 1, Expect: storage.Head{Size: 3, Root: id.Hash{1}}, Head: storage.Head{Size: 4, Root: id.Hash{2}},
		Events:  []storage.Event{{Index: 3, ID: "d"}},
		Changes: []storage.Change{{Kind: "kind", Key: "key", Value: []byte("new"), If: 1}},
	}
	tests := map[string][]byte{
		"head":   headKey(1),
		"name":   appendNameKey(nil, 1, storage.DedupKey{Text: "d"}),
		"record": appendStoredKey(nil, 1, "kind", "key"),
	}
	for fault, key := range tests {
		e := damaged(t, func(b *pebble.Batch) { _ = b.Set(key, []byte("?"), nil) })
		if err := e.Append([]storage.Batch{next}).Wait()[0]; !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("%s: got %v, want %v", fault, err, storage.ErrCorrupt)
		}
	}
}

func TestFatal(t *testing.T) {
	e, err := Open(Options{Dir: "data", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	var told error
	e.onBroken = func(err error) { told = err }
	func() {
		defer func() {
			if recover() == nil {
				t.Error("Fatalf returned")
			}
		}()
		(&logger{engine: e, slog: Options{}.withDefaults().Logger}).Fatalf("manifest: %d", 7)
	}()
	if _, err := e.Head(t.Context(), 1); !errors.Is(err, storage.ErrBroken) || !errors.Is(told, storage.ErrBroken) {
		t.Errorf("got %v, and told %v, want %v", err, told, storage.ErrBroken)
	}
}

// TestHeadCache fills the cache of heads and checks that dropping heads is harmless.
func TestHeadCache(t *testing.T) {
	e := damaged(t, func(*pebble.Batch) {})
	for i := range maxHeads + 10 {
		e.cacheHead(id.Tenant(i+2), head{})
	}
	if got := len(e.write.heads); got > maxHeads {
		t.Errorf("got %d heads, want at most %d", got, maxHeads)
	}
	h, err := e.appliedHead(1)
	want := head{Head: storage.Head{Size: 3, Root: id.Hash{1}}, held: storage.Counter{Name: "held", Value: 2}, holding: true}
	if err != nil || h != want {
		t.Errorf("got %+v, %v, want %+v", h, err, want)
	}
}
