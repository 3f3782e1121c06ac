package index

import (
	"encoding/binary"
	"math"

	"github.com/klauspost/compress/s2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/column"
)

// values are values of the acts of one chunk, by column.
type values []valueColumn

type valueColumn struct {
	path  string
	at    []id.Index // ascending
	cells []column.Value
}

// newValues returns an empty set with columns, which are sorted.
func newValues(columns []Column) values {
	all := make(values, len(columns))
	for i, c := range columns {
		all[i].path = c.Path
	}
	return all
}

// add adds the values of the next act, one for each of the columns.
func (v values) add(at id.Index, cells []column.Value, columns []Column) {
	for i := range cells {
		if cells[i].Kind != column.None && at >= columns[i].From {
			v[i].at, v[i].cells = append(v[i].at, at), append(v[i].cells, cells[i])
		}
	}
}

// remove removes the values of some events, and returns how many these were.
func (v values) remove(of func(id.Index) bool) (removed int) {
	for i := range v {
		c := &v[i]
		left := 0
		for n := range c.at {
			if !of(c.at[n]) {
				c.at[left], c.cells[left] = c.at[n], c.cells[n]
				left++
			}
		}
		removed += len(c.at) - left
		c.at, c.cells = c.at[:left], c.cells[:left]
	}
	return removed
}

// A record of values contains the values of the acts of one chunk. It is an s2 block that contains, for each column that has any, in the
// order of the paths:
//
//	path (text), number of values (uvarint), length of the values in bytes (uvarint)
//	values: (difference of index to the one before)*4 + form (uvarint), and, by form:
//	0: a whole number (varint), 1: a number times 100 (varint), 2: a number (8 bytes, big endian), 3: a text

const (
	formWhole = iota
	formHundredths
	formNumber
	formText
)

// maxStored bounds the columns of a generation: those of the settings, and the ones that were named while it was written.
const maxStored = 32

// maxValues bounds the text of a record of values: each value with a text of column.MaxText bytes, its length and its index.
const maxValues = maxStored * chunkEvents * (column.MaxText + 16)

// encode returns the record of values that follow begin, or nil if there are none.
func (v values) encode(begin id.Index) []byte {
	var b []byte
	for i := range v {
		c := &v[i]
		if len(c.at) == 0 {
			continue
		}
		b = appendText(b, c.path)
		b = binary.AppendUvarint(b, uint64(len(c.at)))
		var body []byte
		before := begin
		for n, at := range c.at {
			form, whole := formOf(c.cells[n])
			body = binary.AppendUvarint(body, uint64(at-before)<<2|uint64(form))
			before = at
			switch form {
			case formText:
				body = appendText(body, c.cells[n].Text)
			case formNumber:
				body = binary.BigEndian.AppendUint64(body, math.Float64bits(c.cells[n].Number))
			default:
				body = binary.AppendVarint(body, whole)
			}
		}
		b = append(binary.AppendUvarint(b, uint64(len(body))), body...)
	}
	if b == nil {
		return nil
	}
	return s2.EncodeBetter(nil, b)
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// formOf returns the form in which a value is stored, and the whole number of it.
func formOf(c column.Value) (form byte, whole int64) {
	if c.Kind == column.Text {
		return formText, 0
	}
	for form, scale := range []float64{formWhole: 1, formHundredths: 100} {
		if scaled := math.Round(c.Number * scale); math.Abs(scaled) <= column.MaxWhole && scaled/scale == c.Number {
			return byte(form), int64(scaled)
		}
	}
	return formNumber, 0
}

// visitValues calls visit with each value of the wanted columns of a record, in the order of the record. A nil record has none.
func visitValues(record []byte, begin id.Index, wanted func(path string) bool, visit func(at id.Index, value column.Value)) error {
	if record == nil {
		return nil
	}
	in, err := openColumns(nil, record, maxValues)
	if err != nil {
		return err
	}
	for len(in.rest) > 0 && !in.failed {
		path, count, length := in.text(), in.uvarint(), in.uvarint()
		if count > chunkEvents || length > uint64(len(in.rest)) {
			return errColumns("values")
		}
		if !wanted(path) {
			in.rest = in.rest[length:]
			continue
		}
		at := begin
		for ; count > 0 && !in.failed; count-- {
			key := in.uvarint()
			if at += id.Index(key >> 2); at-begin >= chunkEvents {
				return errColumns("values")
			}
			value := in.cell(byte(key & 3))
			if !in.failed {
				visit(at, value)
			}
		}
	}
	if in.failed {
		return errColumns("values")
	}
	return nil
}

// cell reads a value in a form.
func (r *columnReader) cell(form byte) column.Value {
	switch form {
	case formText:
		return column.Value{Kind: column.Text, Text: r.text()}
	case formWhole:
		return column.Value{Kind: column.Number, Number: float64(r.varint())}
	case formHundredths:
		return column.Value{Kind: column.Number, Number: float64(r.varint()) / 100}
	}
	if len(r.rest) < 8 {
		r.failed, r.rest = true, nil
		return column.Value{}
	}
	number := math.Float64frombits(binary.BigEndian.Uint64(r.rest))
	r.rest = r.rest[8:]
	return column.Value{Kind: column.Number, Number: number}
}

// decodeValues returns the values of a record.
func decodeValues(record []byte, begin id.Index) (values, error) {
	var all values
	err := visitValues(record, begin, func(path string) bool {
		all = append(all, valueColumn{path: path})
		return true
	}, func(at id.Index, value column.Value) {
		c := &all[len(all)-1]
		c.at, c.cells = append(c.at, at), append(c.cells, value)
	})
	return all, err
}
