package transfer

import (
	"bytes"
	"cmp"
	"errors"
	"io"

	"github.com/agentledger/agentledger/storage"
)

// compareRecords orders records as partitions do.
func compareRecords(a, b storage.Record) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key))
}

// bufferedReader can peek at the next record of a piece.
type bufferedReader struct {
	r     *pieceReader
	next  storage.Record
	state error // error of next; io.EOF after the last record
	held  bool  // next and state are valid
}

func (p *bufferedReader) peekRecord() (storage.Record, error) {
	if p.held {
		return p.next, p.state
	}
	p.held = true
	line, err := p.r.nextLine()
	if err == nil {
		if p.next, err = parseRecordLine(line); err != nil {
			err = p.r.damagedPiece("line %d: %w", p.r.read+1, err)
		}
	}
	p.state = err
	return p.next, err
}

// findEntry consumes the next record if it is the wanted one.
func (p *bufferedReader) findEntry(want indexEntry) (storage.Record, bool, error) {
	got, err := p.peekRecord()
	if err != nil && !errors.Is(err, io.EOF) {
		return got, false, err
	}
	if err == nil && got.Kind == want.Kind && got.Key == want.Key {
		if want.Value != nil && !bytes.Equal(got.Value, want.Value) {
			return got, false, p.r.damagedPiece("line %d: %s %q belongs to another organization", p.r.read+1, got.Kind, got.Key)
		}
		p.held = false
		return got, true, nil
	}
	if want.Presence == Optional || want.Presence == Supplied {
		return got, false, nil
	}
	return got, false, p.r.damagedPiece("line %d: %s %q is missing", p.r.read+1, want.Kind, want.Key)
}

// checkExhausted returns an error if there is a record that matches no entry.
func (p *bufferedReader) checkExhausted() error {
	got, err := p.peekRecord()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		err = p.r.damagedPiece("line %d: %s %q does not belong there", p.r.read+1, got.Kind, got.Key)
	}
	return err
}
