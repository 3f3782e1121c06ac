package index

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/agentledger/agentledger/storage"
)

// The postings of a block are in one record for each bucket. A record is a sequence of entries in
// ascending order of their fingerprints:
//
//	fingerprint (4 bytes, big endian) | length*2 + form (uvarint) | places (length bytes)
//
// A place is the number of an event in its block. In form 0 places are differences as uvarints, the
// first one to 0. In form 1 they are a bitmap without the zero words at its end. The shorter form is
// used.

// set is a set of places of one block.
type set [blockEvents / 64]uint64

func (s *set) addPlace(place uint16) { s[place/64] |= 1 << (place % 64) }

// intersect removes all places that other does not have, and reports whether anything is left.
func (s *set) intersect(other *set) bool {
	var left uint64
	for i := range s {
		s[i] &= other[i]
		left |= s[i]
	}
	return left != 0
}

// addRange adds the places [begin, end).
func (s *set) addRange(begin, end int) {
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

// places yields the places in ascending order, or in descending order.
func (s *set) places(ascending bool) func(yield func(uint16) bool) {
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

// appendPlaces appends the shorter form of the set.
func (s *set) appendPlaces(b []byte) []byte {
	words := len(s)
	for words > 0 && s[words-1] == 0 {
		words--
	}
	begin, last := len(b), uint16(0)
	for place := range s.places(true) {
		b = binary.AppendUvarint(b, uint64(place-last))
		last = place
		if len(b)-begin > words*8 {
			b = b[:begin]
			for _, word := range s[:words] {
				b = binary.LittleEndian.AppendUint64(b, word)
			}
			return prependHeader(b, begin, 1)
		}
	}
	return prependHeader(b, begin, 0)
}

// prependHeader puts length and form before the places b[begin:].
func prependHeader(b []byte, begin int, form uint64) []byte {
	var room [binary.MaxVarintLen64]byte
	header := binary.AppendUvarint(room[:0], uint64(len(b)-begin)<<1|form)
	return slices.Insert(b, begin, header...)
}

// entry is one entry of a bucket's record.
type entry struct {
	fingerprint uint32
	bitmap      bool
	places      []byte // as stored
	text        []byte // the whole entry
}

func errPostings(step string) error { return fmt.Errorf("postings: %s: %w", step, storage.ErrCorrupt) }

// cutEntry cuts the first entry off a record.
func cutEntry(record []byte) (e entry, rest []byte, err error) {
	if len(record) < 5 {
		return e, nil, errPostings("short entry")
	}
	header, n := binary.Uvarint(record[4:])
	if n <= 0 || header>>1 > uint64(len(record)-4-n) {
		return e, nil, errPostings("length")
	}
	end := 4 + n + int(header>>1)
	e = entry{binary.BigEndian.Uint32(record), header&1 == 1, record[4+n : end], record[:end]}
	return e, record[end:], nil
}

// findEntry returns the entry of a fingerprint, false when there is none.
func findEntry(record []byte, fingerprint uint32) (e entry, found bool, err error) {
	for len(record) > 0 {
		if e, record, err = cutEntry(record); err != nil || e.fingerprint >= fingerprint {
			return e, err == nil && e.fingerprint == fingerprint, err
		}
	}
	return entry{}, false, nil
}

// addTo adds the places of an entry to s.
func (e entry) addTo(s *set) error {
	if e.bitmap {
		if len(e.places)%8 != 0 || len(e.places)/8 > len(s) {
			return errPostings("bitmap")
		}
		for i := 0; i < len(e.places); i += 8 {
			s[i/8] |= binary.LittleEndian.Uint64(e.places[i:])
		}
		return nil
	}
	place := uint64(0)
	for b := e.places; len(b) > 0; {
		step, n := binary.Uvarint(b)
		if n <= 0 || step >= blockEvents || place+step >= blockEvents {
			return errPostings("place")
		}
		place += step
		s.addPlace(uint16(place))
		b = b[n:]
	}
	return nil
}

// mergePostings returns a bucket's record with more places, which are by fingerprint.
func mergePostings(record []byte, more map[uint32][]uint16) ([]byte, error) {
	merged := make([]byte, 0, len(record)+8*len(more))
	names := slices.Sorted(maps.Keys(more))
	for len(record) > 0 || len(names) > 0 {
		var old entry
		var err error
		rest := record
		if len(record) > 0 {
			if old, rest, err = cutEntry(record); err != nil {
				return nil, err
			}
		}
		if len(names) == 0 || len(record) > 0 && old.fingerprint < names[0] {
			merged, record = append(merged, old.text...), rest
			continue
		}
		known := len(record) > 0 && old.fingerprint == names[0]
		if !known {
			old, rest = entry{}, record
		}
		if merged, err = old.appendWith(merged, names[0], more[names[0]]); err != nil {
			return nil, err
		}
		record, names = rest, names[1:]
	}
	return merged, nil
}

// appendWith appends the entry with more places.
func (e entry) appendWith(b []byte, fingerprint uint32, more []uint16) ([]byte, error) {
	b = binary.BigEndian.AppendUint32(b, fingerprint)
	if len(e.places) == 0 && len(more) == 1 { // most entries, of traces and hashes
		var room [binary.MaxVarintLen64]byte
		place := binary.AppendUvarint(room[:0], uint64(more[0]))
		return append(append(b, byte(len(place)<<1)), place...), nil
	}
	var s set
	if err := e.addTo(&s); err != nil {
		return nil, err
	}
	for _, place := range more {
		s.addPlace(place)
	}
	return s.appendPlaces(b), nil
}
