package transfer

import (
	"bytes"
	"cmp"
	"errors"
	"io"

	"github.com/agentledger/agentledger/storage"
)

// compare orders records as partitions do.
func compare(a, b storage.Record) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key))
}

// peeker looks at the next record of a piece without taking it.
type peeker struct {
	r     *pieceReader
	next  storage.Record
	state error // of next: nil when there is one, io.EOF behind the last
	held  bool
}

func (p *peeker) peek() (storage.Record, error) {
	if p.held {
		return p.next, p.state
	}
	p.held = true
	line, err := p.r.next()
	if err == nil {
		if p.next, err = parseRecord(line); err != nil {
			err = p.r.damaged("line %d: %w", p.r.read+1, err)
		}
	}
	p.state = err
	return p.next, err
}

// find takes the next record if it is the wanted one.
func (p *peeker) find(want standIn) (storage.Record, bool, error) {
	got, err := p.peek()
	if err != nil && !errors.Is(err, io.EOF) {
		return got, false, err
	}
	if err == nil && got.Kind == want.Kind && got.Key == want.Key {
		if want.Value != nil && !bytes.Equal(got.Value, want.Value) {
			return got, false, p.r.damaged("line %d: %s %q is another's", p.r.read+1, got.Kind, got.Key)
		}
		p.held = false
		return got, true, nil
	}
	if want.presence == optional || want.presence == supplied {
		return got, false, nil
	}
	return got, false, p.r.damaged("line %d: %s %q is missing", p.r.read+1, want.Kind, want.Key)
}

// nothingMore refuses a record that nobody wanted.
func (p *peeker) nothingMore() error {
	got, err := p.peek()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		err = p.r.damaged("line %d: %s %q does not belong there", p.r.read+1, got.Kind, got.Key)
	}
	return err
}
