package index

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/storage"
)

// randomPlaces returns places for fingerprints that all, some, few and single events have.
func randomPlaces(r *rand.Rand) map[uint32][]uint16 {
	places := map[uint32][]uint16{}
	for place := range blockSize {
		for _, fingerprint := range []uint32{1, 1 + uint32(r.IntN(3)), 100 + uint32(r.IntN(3000))} {
			if of := places[fingerprint]; len(of) == 0 || of[len(of)-1] != uint16(place) {
				places[fingerprint] = append(of, uint16(place))
			}
		}
	}
	places[7], places[8], places[9] = []uint16{0}, []uint16{blockSize - 1}, []uint16{0, blockSize - 1}
	return places
}

func encode(places map[uint32][]uint16) (record []byte) {
	for fingerprint := range uint32(3200) {
		if of := places[fingerprint]; of != nil {
			record = appendEntry(record, fingerprint, of)
		}
	}
	return record
}

// Records of postings contain all places in either form, and in both orders.
func TestPostings(t *testing.T) {
	want := randomPlaces(rand.New(rand.NewPCG(1, 2)))
	record := encode(want)
	for fingerprint := range uint32(3200) {
		e, found, err := findEntry(record, fingerprint)
		if err != nil || found != (want[fingerprint] != nil) {
			t.Fatalf("%d: got %v, %v", fingerprint, found, err)
		}
		if !found {
			continue
		}
		var s placeSet
		if err := e.AddTo(&s); err != nil {
			t.Fatal(err)
		}
		var visited []uint16
		err = e.VisitPlaces(func(place uint16) { visited = append(visited, place) })
		if got := slices.Collect(s.Places(true)); err != nil || !slices.Equal(got, want[fingerprint]) ||
			!slices.Equal(visited, got) || s.Count() != len(got) {
			t.Errorf("%d: got %d places, %v, want %d", fingerprint, len(got), err, len(want[fingerprint]))
		}
		down := slices.Collect(s.Places(false))
		if slices.Reverse(down); !slices.Equal(down, want[fingerprint]) {
			t.Errorf("%d: got other places in descending order", fingerprint)
		}
	}
	if got, want := len(appendEntry(nil, 1, want[1])), 4+3+blockSize/8; got != want {
		t.Errorf("a term of all events: got %d bytes, want %d", got, want)
	}
}

// Sections are found by their numbers, and a missing section is not confused with another one.
func TestSections(t *testing.T) {
	var record []byte
	for _, n := range []uint16{3, 500, 1 << 15} {
		record = appendSection(record, n, make([]byte, n%200+1))
	}
	for n, want := range map[uint16]int{0: 0, 3: 4, 4: 0, 500: 101, 1 << 15: 1<<15%200 + 1, 1<<15 + 1: 0} {
		if got, err := findSection(record, n); err != nil || len(got) != want {
			t.Errorf("section %d: got %d bytes, %v, want %d", n, len(got), err, want)
		}
	}
}

// Sets are united and cut like sets of numbers.
func TestSets(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var a, b, span placeSet
		in := map[uint16]int{}
		for range r.IntN(300) {
			place := uint16(r.IntN(blockSize))
			a.AddPlace(place)
			in[place] |= 1
			if r.IntN(2) == 0 {
				b.AddPlace(place)
				in[place] |= 2
			}
		}
		begin := r.IntN(blockSize + 1)
		end := begin + r.IntN(blockSize+1-begin)
		span.AddRange(begin, end)
		left := a.Intersect(&b)
		left = a.Intersect(&span) && left
		want := 0
		for place, of := range in {
			if of == 3 && begin <= int(place) && int(place) < end {
				want++
			}
		}
		if a.Count() != want || left != (want > 0) {
			t.Fatalf("within [%d, %d): got %d, %v, want %d", begin, end, a.Count(), left, want)
		}
	}
}

// Damaged postings are rejected, and never make the reader fail otherwise.
func FuzzPostings(f *testing.F) {
	entries := appendEntry(appendEntry(nil, 1, []uint16{1, 2, 60_000}), 9, []uint16{5})
	f.Add(entries)
	f.Add(appendSection(nil, 7, entries))
	f.Fuzz(func(t *testing.T, record []byte) {
		checkEntries(t, record)
		for rest := record; len(rest) > 0; {
			_, entries, left, err := cutSection(rest)
			if err != nil {
				checkCorrupt(t, err)
				return
			}
			checkEntries(t, entries)
			rest = left
		}
	})
}

func checkEntries(t *testing.T, record []byte) {
	for len(record) > 0 {
		e, rest, err := cutEntry(record)
		if err != nil {
			checkCorrupt(t, err)
			return
		}
		var s placeSet
		visited := 0
		err = e.VisitPlaces(func(uint16) { visited++ })
		if again := e.AddTo(&s); (again == nil) != (err == nil) {
			t.Errorf("got %v and %v", err, again)
		}
		if checkCorrupt(t, err); err == nil && visited < s.Count() {
			t.Errorf("visited %d places of %d", visited, s.Count())
		}
		record = rest
	}
}

func checkCorrupt(t *testing.T, err error) {
	if err != nil && !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
}
