package pebblestore

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/agentledger/agentledger/id"
)

// formatNumber is the format of everything in the store: keys, values and the store file. It must be raised if an older
// program would misread data that is written from then on. A program rejects every number that it does not know.
//
// The number is in the store file, which is read before anything else, and also under a key, in case that file is lost.
// A store with neither was created by a program that predates the numbers, and has format 1. A program that raises the
// number writes the file first, then the key, then the values in the new form.
//
// Format 2 adds erased events (form3 of events). Format 3 adds events whose texts are archived (form4). A store is
// raised to a format by its first such event, so that older programs continue to work with all other stores.
const (
	formatNumber   = 1
	formatErased   = 2
	formatArchived = 3
)

// ErrFormat is returned for a store with a format that this program does not know.
var ErrFormat = errors.New("it was created by a newer agentledger")

// wantFormat returns ErrFormat (wrapped) if this program does not know the format.
func wantFormat(n uint64) error {
	if isKnownFormat(n) {
		return nil
	}
	return fmt.Errorf("the store has format %d, this program supports %d to %d: %w; use that version or a newer one", n,
		formatNumber, formatArchived, ErrFormat)
}

func isKnownFormat(n uint64) bool { return formatNumber <= n && n <= formatArchived }

func formatKey() []byte { return appendPrefix(nil, id.Service, familyFormat) }

func erasuresKey() []byte { return appendPrefix(nil, id.Service, familyErasures) }

// readFormat checks the format under the key. found is false if there is no key.
func readFormat(db *pebble.DB) (found bool, err error) {
	v, closer, err := db.Get(formatKey())
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	n, err := parseNumber(v)
	if err == nil {
		err = wantFormat(n)
	}
	return true, errors.Join(err, closer.Close())
}

// keepFormat writes the key if it is missing.
func (e *Engine) keepFormat() error {
	found, err := readFormat(e.db)
	if err != nil || found {
		return err
	}
	return e.db.Set(formatKey(), binary.BigEndian.AppendUint64(nil, formatNumber), pebble.Sync)
}

// peekFormat is like readFormat for a store that is not open yet, without changing it.
func (e *Engine) peekFormat(o Options) error {
	o.FS, o.ReadOnly = readOnlyFS{FS: o.FS}, true
	db, err := pebble.Open(o.Dir, o.pebble(e))
	if err != nil {
		return err
	}
	_, err = readFormat(db)
	return errors.Join(err, db.Close())
}
