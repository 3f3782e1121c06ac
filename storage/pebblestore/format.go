package pebblestore

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/agentledger/agentledger/id"
)

// formatNumber is the form of everything in the store: keys, values and the store file. It MUST be
// raised when an older program would misread the data that is written from then on. A program
// refuses every number that it does not know.
//
// The number is in the store file, which is read before anything else. It is also under a key, in case that file is
// lost. A store with neither was made by a program from before the numbers, in the forms of format 1. A program that
// raises the number writes it to the file first, then to the key, then writes the values of the new form.
//
// Format 2 is format 1 with events that were erased (form3 of events). Format 3 is format 2 with events whose
// texts are archived (form4). A store gets each with its first such event, so that older programs go on in all
// other stores.
const (
	formatNumber   = 1
	formatErased   = 2
	formatArchived = 3
)

// ErrFormat says that the store has a format that this program does not know.
var ErrFormat = errors.New("it was made by a newer agentledger")

// wantFormat refuses a store of another format than this program's.
func wantFormat(n uint64) error {
	if isKnownFormat(n) {
		return nil
	}
	return fmt.Errorf("the store has format %d, this program knows %d to %d: %w; use that one or a newer one", n,
		formatNumber, formatArchived, ErrFormat)
}

func isKnownFormat(n uint64) bool { return formatNumber <= n && n <= formatArchived }

func formatKey() []byte { return appendPrefix(nil, id.Service, familyFormat) }

func erasuresKey() []byte { return appendPrefix(nil, id.Service, familyErasures) }

// readFormat refuses a store of another format by its key. found is false where there is none.
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

// keepFormat writes the key where it is missing.
func (e *Engine) keepFormat() error {
	found, err := readFormat(e.db)
	if err != nil || found {
		return err
	}
	return e.db.Set(formatKey(), binary.BigEndian.AppendUint64(nil, formatNumber), pebble.Sync)
}

// peekFormat refuses a store of another format by its key, without a change.
func (e *Engine) peekFormat(o Options) error {
	o.FS, o.ReadOnly = readOnlyFS{FS: o.FS}, true
	db, err := pebble.Open(o.Dir, o.pebble(e))
	if err != nil {
		return err
	}
	_, err = readFormat(db)
	return errors.Join(err, db.Close())
}
