package log_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// Scattered events are returned in the order of the queried indices, for one organization only.
func TestEventsAt(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	var names []string
	for n := range 150 {
		names = append(names, fmt.Sprint("e", n))
	}
	w.mustAppend(red, names...)
	w.mustAppend(blue, "of-blue")
	s := w.state(red)
	all := make([]id.Index, s.Size())
	for i := range all {
		all[i] = id.Index(len(all) - 1 - i)
	}
	for what, at := range map[string][]id.Index{"none": nil, "one": {7}, "mixed": {9, 3, 100, 4}, "all, newest first": all} {
		var got []id.Index
		for e, err := range w.ledgers.EventsAt(t.Context(), s, at, storage.FieldEnvelope) {
			if err != nil {
				t.Fatal(err)
			}
			if one, err := w.ledgers.Event(t.Context(), s, e.Index, storage.FieldEnvelope); err != nil ||
				string(one.Envelope) != string(e.Envelope) || e.Envelope == nil {
				t.Errorf("%s: event %d: got %s, want %s", what, e.Index, e.Envelope, one.Envelope)
			}
			got = append(got, e.Index)
		}
		if !slices.Equal(got, at) {
			t.Errorf("%s: got %v, want %v", what, got, at)
		}
	}
	for e, err := range w.ledgers.EventsAt(t.Context(), s, []id.Index{1, s.Size()}, storage.FieldEnvelope) {
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("beyond the end: got %d, %v", e.Index, err)
		}
	}
}
