package index

// splitter splits the records of a bucket by the next bits of the fingerprints.
type splitter struct {
	level, bits int
	out         [][]byte // records with the sections that were added, by those bits
}

// addRecord adds the record of a part, by its number among the merged parts.
func (s *splitter) addRecord(part uint64, record []byte) error {
	if s.level == 1 {
		return s.addSection(part, record)
	}
	shift := (s.level - 1) * s.bits
	for len(record) > 0 {
		section, entries, rest, err := cutSection(record)
		if err == nil && int(section)>>shift != 0 {
			err = errKey()
		}
		if err == nil {
			err = s.addSection(part<<shift|uint64(section), entries)
		}
		if err != nil {
			return err
		}
		record = rest
	}
	return nil
}

// addSection adds the entries of a block. They are in ascending order, so the entries of one part are adjacent.
func (s *splitter) addSection(section uint64, entries []byte) error {
	begin, last := entries, -1
	cut := func(rest []byte) {
		if some := begin[:len(begin)-len(rest)]; len(some) > 0 {
			s.out[last] = appendSection(s.out[last], uint16(section), some)
		}
		begin = rest
	}
	for len(entries) > 0 {
		e, rest, err := cutEntry(entries)
		if err != nil {
			return err
		}
		if i := int(subBucket(e.Fingerprint, s.level, s.bits)); i != last {
			if cut(entries); i < last {
				return errKey()
			}
			last = i
		}
		entries = rest
	}
	cut(nil)
	return nil
}

// subBucket returns the bits of a fingerprint that a level adds to the bucket.
func subBucket(fingerprint uint32, level, bits int) uint32 {
	return fingerprint << ((level - 1) * bits) >> (32 - bits)
}
