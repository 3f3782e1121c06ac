package index

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Records of postings hold all places in either form, however they were merged.
func TestPostings(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var record []byte
	want := map[uint32][]uint16{}
	for begin := 0; begin < blockEvents; begin += chunkEvents {
		more := map[uint32][]uint16{}
		for place := begin; place < begin+chunkEvents; place++ {
			for _, fingerprint := range []uint32{1, 1 + uint32(r.IntN(3)), 100 + uint32(r.IntN(3000))} {
				if places := more[fingerprint]; len(places) == 0 || places[len(places)-1] != uint16(place) {
					more[fingerprint] = append(places, uint16(place))
				}
			}
		}
		for fingerprint, places := range more {
			want[fingerprint] = append(want[fingerprint], places...)
		}
		var err error
		if record, err = mergePostings(record, more); err != nil {
			t.Fatal(err)
		}
	}
	for fingerprint := range uint32(3200) {
		e, found, err := findEntry(record, fingerprint)
		if err != nil || found != (want[fingerprint] != nil) {
			t.Fatalf("%d: got %v, %v", fingerprint, found, err)
		}
		if !found {
			continue
		}
		var s set
		if err := e.addTo(&s); err != nil {
			t.Fatal(err)
		}
		if got := slices.Collect(s.places(true)); !slices.Equal(got, want[fingerprint]) {
			t.Errorf("%d: got %d places, want %d", fingerprint, len(got), len(want[fingerprint]))
		}
		down := slices.Collect(s.places(false))
		if slices.Reverse(down); !slices.Equal(down, want[fingerprint]) {
			t.Errorf("%d: got other places in descending order", fingerprint)
		}
	}
	if e, _, _ := findEntry(record, 1); !e.bitmap || len(e.places) != blockEvents/8 {
		t.Errorf("a term of all events: got %d bytes", len(e.places))
	}
}

// Damaged postings and columns are refused, and never make the reader fail otherwise.
func FuzzStoredForms(f *testing.F) {
	record, err := mergePostings(nil, map[uint32][]uint16{1: {1, 2, 60_000}, 9: {5}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(record)
	rows := make([]Row, chunkEvents)
	for i := range rows {
		rows[i] = Row{Agent: "a", Tool: id.Tool([]string{"x", "y"}[i%2]), ReceivedAt: id.Instant(i)}
	}
	f.Add(encodeColumns(rows))
	f.Fuzz(func(t *testing.T, record []byte) {
		if _, err := mergePostings(record, map[uint32][]uint16{7: {3}}); err != nil && !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("postings: got %v", err)
		}
		for rest := record; len(rest) > 0; {
			e, left, err := cutEntry(rest)
			if err != nil {
				break
			}
			var s set
			_ = e.addTo(&s)
			rest = left
		}
		n := 0
		if err := visitColumns(record, 0, func(*Row) { n++ }); err == nil && n != chunkEvents || err != nil && !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("columns: got %d rows, %v", n, err)
		}
	})
}
