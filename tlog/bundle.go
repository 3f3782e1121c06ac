package tlog

import (
	"encoding/binary"
	"fmt"
	"math"
)

// MaxEntry is the maximum size of an entry of a bundle in bytes.
const MaxEntry = math.MaxUint16

// EntryBundle returns the content of an entry bundle: the length of each entry as a
// big-endian uint16, followed by the entry. There are 1 to TileWidth entries of at most
// MaxEntry bytes.
func EntryBundle(entries ...[]byte) ([]byte, error) {
	size := 0
	for _, entry := range entries {
		size += 2 + len(entry)
	}
	if len(entries) == 0 || len(entries) > TileWidth {
		return nil, fmt.Errorf("write entry bundle: number of entries: %w", ErrMalformed)
	}
	bundle, err := make([]byte, 0, size), error(nil)
	for _, entry := range entries {
		if bundle, err = AppendBundled(bundle, entry); err != nil {
			return nil, err
		}
	}
	return bundle, nil
}

// AppendBundled appends one entry to an entry bundle that has fewer than TileWidth entries.
func AppendBundled(bundle, entry []byte) ([]byte, error) {
	if len(entry) > MaxEntry {
		return nil, fmt.Errorf("write entry bundle: length of an entry: %w", ErrMalformed)
	}
	return append(binary.BigEndian.AppendUint16(bundle, uint16(len(entry))), entry...), nil
}

// ParseEntryBundle returns the entries of a bundle, which must contain exactly width entries and no
// further bytes. The entries alias bundle.
func ParseEntryBundle(bundle []byte, width uint16) ([][]byte, error) {
	if width == 0 || width > TileWidth {
		return nil, fmt.Errorf("read entry bundle: width: %w", ErrMalformed)
	}
	entries := make([][]byte, width)
	for i := range entries {
		if len(bundle) < 2 {
			return nil, fmt.Errorf("read entry bundle: too few entries: %w", ErrMalformed)
		}
		end := 2 + int(binary.BigEndian.Uint16(bundle))
		if len(bundle) < end {
			return nil, fmt.Errorf("read entry bundle: last entry is cut off: %w", ErrMalformed)
		}
		entries[i], bundle = bundle[2:end:end], bundle[end:]
	}
	if len(bundle) > 0 {
		return nil, fmt.Errorf("read entry bundle: more than its entries: %w", ErrMalformed)
	}
	return entries, nil
}
