package transfer

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Erased events whose statement is missing or is another event are found before anything is imported.
func TestErasuresThatAreNotStated(t *testing.T) {
	plain := func(i id.Index) storage.Event {
		return storage.Event{Index: i, Columns: storage.Columns{Agent: "agt"}, Envelope: []byte(`{"text":"x"}`)}
	}
	erased := func(i, by id.Index) storage.Event {
		return storage.Event{Index: i, Columns: storage.Columns{Agent: "agt"}, ErasedBy: by}
	}
	for name, test := range map[string]struct {
		events []storage.Event
		want   string
	}{
		"none erased":            {[]storage.Event{plain(0), plain(1)}, ""},
		"its statement is away":  {[]storage.Event{plain(0), erased(1, 9)}, "event 1 was erased by event 9, which is missing"},
		"it names another event": {[]storage.Event{erased(0, 2), erased(1, 2), plain(2)}, "erasing event 2"},
	} {
		claims := make(erasures)
		var err error
		for i := range test.events {
			if err == nil {
				err = claims.noteEvent(&test.events[i])
			}
		}
		if err == nil {
			err = claims.end()
		}
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
