package index

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/agentledger/agentledger/storage"
)

// Postings are which events of a block have a term. A record that cannot be parsed is storage.ErrCorrupt; it is never read
// as fewer places.
//
// The postings of a complete block are stored in one record per bucket. A record is a sequence of entries in ascending
// order of their fingerprints:
//
//	fingerprint (4 bytes, big endian) | length*2 + form (uvarint) | places (length bytes)
//
// A place is the number of an event in its block, below blockSize. In form 0, places are differences as uvarints, the
// first one from 0. In form 1, they are a bitmap without trailing zero words. The shorter form is used.
//
// The postings of the latest events, whose block is not complete yet, are stored in few records for all buckets. A record
// is a sequence of sections in ascending order, each with the entries of one bucket:
//
//	section (2 bytes, big endian) | length (uvarint) | entries

// blockSize is the number of events of a block.
const blockSize = 1 << 16

// placeSet is a set of places of one block.
type placeSet [blockSize / 64]uint64

// AddPlace adds a place.
func (s *placeSet) AddPlace(place uint16) { s[place/64] |= 1 << (place % 64) }

// Contains reports whether the set contains a place.
func (s *placeSet) Contains(place uint16) bool { return s[place/64]&(1<<(place%64)) != 0 }

// Count returns the number of places in the set.
func (s *placeSet) Count() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Intersect removes all places that other does not contain, and reports whether any is left.
func (s *placeSet) Intersect(other *placeSet) bool {
	var left uint64
	for i := range s {
		s[i] &= other[i]
		left |= s[i]
	}
	return left != 0
}

// intersectEach intersects each set with its counterpart. nil is the empty set.
func intersectEach(sets, with []*placeSet) {
	for i := range sets {
		if sets[i] == nil || with[i] == nil || !sets[i].Intersect(with[i]) {
			sets[i] = nil
		}
	}
}

// AddRange adds the places [begin, end).
func (s *placeSet) AddRange(begin, end int) {
	for i := begin / 64; i < (end+63)/64; i++ {
		word := ^uint64(0)
		if i == begin/64 {
			word &= ^uint64(0) << (begin % 64)
		}
		if i == end/64 {
			word &= 1<<(end%64) - 1
		}
		s[i] |= word
	}
}

// Places yields the places in ascending or descending order.
func (s *placeSet) Places(ascending bool) func(yield func(uint16) bool) {
	return func(yield func(uint16) bool) {
		for n := range s {
			i := n
			if !ascending {
				i = len(s) - 1 - n
			}
			for word := s[i]; word != 0; {
				bit := bits.TrailingZeros64(word)
				if !ascending {
					bit = 63 - bits.LeadingZeros64(word)
				}
				if !yield(uint16(i*64 + bit)) {
					return
				}
				word &^= 1 << bit
			}
		}
	}
}

// appendEntry appends the entry of a fingerprint, with its places in ascending order.
func appendEntry(b []byte, fingerprint uint32, places []uint16) []byte {
	b = binary.BigEndian.AppendUint32(b, fingerprint)
	if len(places) == 1 { // most entries, of traces and hashes
		var buffer [binary.MaxVarintLen64]byte
		place := binary.AppendUvarint(buffer[:0], uint64(places[0]))
		return append(append(b, byte(len(place)<<1)), place...)
	}
	begin, last := len(b), uint16(0)
	words := int(places[len(places)-1])/64 + 1
	for _, place := range places {
		b = binary.AppendUvarint(b, uint64(place-last))
		last = place
		if len(b)-begin > words*8 {
			var s placeSet
			for _, place := range places {
				s.AddPlace(place)
			}
			b = b[:begin]
			for _, word := range s[:words] {
				b = binary.LittleEndian.AppendUint64(b, word)
			}
			return prependHeader(b, begin, 1)
		}
	}
	return prependHeader(b, begin, 0)
}

// prependHeader inserts length and form before the places b[begin:].
func prependHeader(b []byte, begin int, form uint64) []byte {
	var buffer [binary.MaxVarintLen64]byte
	header := binary.AppendUvarint(buffer[:0], uint64(len(b)-begin)<<1|form)
	return slices.Insert(b, begin, header...)
}

// postingEntry is one entry of a bucket's record.
type postingEntry struct {
	Fingerprint uint32

	bitmap bool
	places []byte // as stored
}

func corrupt(step string) error { return fmt.Errorf("postings: %s: %w", step, storage.ErrCorrupt) }

// cutEntry cuts the first entry off a record.
func cutEntry(record []byte) (e postingEntry, rest []byte, err error) {
	if len(record) < 5 {
		return e, nil, corrupt("short entry")
	}
	header, n := binary.Uvarint(record[4:])
	if n <= 0 || header>>1 > uint64(len(record)-4-n) {
		return e, nil, corrupt("length")
	}
	end := 4 + n + int(header>>1)
	e = postingEntry{Fingerprint: binary.BigEndian.Uint32(record), bitmap: header&1 == 1, places: record[4+n : end]}
	return e, record[end:], nil
}

// findEntry returns the entry of a fingerprint. found reports whether there is one.
func findEntry(record []byte, fingerprint uint32) (e postingEntry, found bool, err error) {
	for len(record) > 0 {
		if e, record, err = cutEntry(record); err != nil || e.Fingerprint >= fingerprint {
			return e, err == nil && e.Fingerprint == fingerprint, err
		}
	}
	return postingEntry{}, false, nil
}

// AddTo adds the places of an entry to s.
func (e postingEntry) AddTo(s *placeSet) error {
	if !e.bitmap {
		return e.addList(s)
	}
	if len(e.places)%8 != 0 || len(e.places)/8 > len(s) {
		return corrupt("bitmap")
	}
	for i := 0; i < len(e.places); i += 8 {
		s[i/8] |= binary.LittleEndian.Uint64(e.places[i:])
	}
	return nil
}

// addList is like VisitPlaces with AddPlace, but takes half the time.
func (e postingEntry) addList(s *placeSet) error {
	place := uint64(0)
	for b := e.places; len(b) > 0; {
		step, n := uint64(b[0]), 1
		if step >= 0x80 {
			step, n = binary.Uvarint(b)
		}
		if n <= 0 || step >= blockSize || place+step >= blockSize {
			return corrupt("place")
		}
		place += step
		s[place/64] |= 1 << (place % 64)
		b = b[n:]
	}
	return nil
}

// VisitPlaces calls visit with the places of an entry in ascending order.
func (e postingEntry) VisitPlaces(visit func(uint16)) error {
	if e.bitmap {
		var s placeSet
		err := e.AddTo(&s)
		for place := range s.Places(true) {
			visit(place)
		}
		return err
	}
	place := uint64(0)
	for b := e.places; len(b) > 0; {
		step, n := binary.Uvarint(b)
		if n <= 0 || step >= blockSize || place+step >= blockSize {
			return corrupt("place")
		}
		place += step
		visit(uint16(place))
		b = b[n:]
	}
	return nil
}

// appendSection appends a section to a record of several sections.
func appendSection(b []byte, section uint16, entries []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, section)
	return append(binary.AppendUvarint(b, uint64(len(entries))), entries...)
}

// cutSection cuts the first section off a record.
func cutSection(record []byte) (section uint16, entries, rest []byte, err error) {
	if len(record) < 3 {
		return 0, nil, nil, corrupt("short section")
	}
	length, n := binary.Uvarint(record[2:])
	if n <= 0 || length > uint64(len(record)-2-n) {
		return 0, nil, nil, corrupt("length of a section")
	}
	end := 2 + n + int(length)
	return binary.BigEndian.Uint16(record), record[2+n : end], record[end:], nil
}

// findSection returns the entries of a section, or nil if there is none.
func findSection(record []byte, wanted uint16) ([]byte, error) {
	for len(record) > 0 {
		section, entries, rest, err := cutSection(record)
		if err != nil || section >= wanted {
			if err == nil && section == wanted {
				return entries, nil
			}
			return nil, err
		}
		record = rest
	}
	return nil, nil
}
