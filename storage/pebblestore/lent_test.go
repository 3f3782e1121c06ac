package pebblestore_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// Lent texts are those of the event until the next event, wherever its envelope is stored: with its record, separately,
// or nowhere because it is erased. Events of EventsAt are kept together, so none is lent. Another organization appends
// in the meantime.
func TestLentTexts(t *testing.T) {
	const parts = storage.FieldRecord | storage.FieldEnvelope
	e := open(t, pebblestore.Options{Dir: "data", FS: vfs.NewMem()})
	defer e.Close()
	red, blue := storagetest.NewWriter(1), storagetest.NewWriter(2)
	first := red.Next(40)
	first.Events[7].Envelope = bytes.Repeat([]byte("long "), 4<<10)
	wantAll(t, e.Append([]storage.Batch{first}).Wait(), nil)
	last := red.Next(10)
	last.Events[0].Erases = []id.Range{{Begin: 3, End: 4}}
	wantAll(t, e.Append([]storage.Batch{last}).Wait(), nil)
	for _, r := range []id.Range{{Begin: 0, End: 50}, {Begin: 7, End: 8}, {Begin: 2, End: 9}} {
		var kept, lent []storage.Event
		var at []id.Index
		for event, err := range e.Events(t.Context(), 1, r.Begin, r.End, parts) {
			if err != nil {
				t.Fatal(err)
			}
			kept, at = append(kept, event), append(at, event.Index)
		}
		for event, err := range e.Events(t.Context(), 1, r.Begin, r.End, parts|storage.FieldLent) {
			if err != nil {
				t.Fatal(err)
			}
			lent = append(lent, storagetest.CloneEvent(event, parts))
			wantAll(t, e.Append([]storage.Batch{blue.Next(1)}).Wait(), nil)
		}
		together, err := e.EventsAt(t.Context(), 1, at, parts|storage.FieldLent)
		if err != nil || len(kept) != r.Len() || !reflect.DeepEqual(lent, kept) || !reflect.DeepEqual(together, kept) {
			t.Errorf("%v: got %d lent and %d together, %v, which are not the %d that were copied", r, len(lent),
				len(together), err, len(kept))
		}
	}
}
