package index

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// A column record contains the rows of one chunk, for counts: time, agent, tool, kind, rule and the two decisions. It
// is an s2 block that contains, for chunkEvents rows,
//
//	differences of time to the row before (varints)
//	four columns: agents, tools, kinds, rules, each a dictionary (a uvarint count and that many texts) and
//	a number of each row: the low bytes of all, and if the dictionary has more than 256 texts, the high bytes of all
//	a byte of the decisions of each row, effective*4 + declared
//
// A text is a uvarint length and its bytes. A number is the index of a text in its dictionary.

// dictionary numbers texts.
type dictionary struct {
	numbers map[string]int
	texts   []string
}

func (d *dictionary) number(text string) uint64 {
	n, known := d.numbers[text]
	if !known {
		if d.numbers == nil {
			d.numbers = make(map[string]int)
		}
		n = len(d.texts)
		d.numbers[text] = n
		d.texts = append(d.texts, text)
	}
	return uint64(n)
}

// The columns with a dictionary, in the order of a record.
const (
	agentColumn = iota
	toolColumn
	kindColumn
	ruleColumn
	textColumns
)

// columns are the rows of one chunk, or its first ones.
type columns struct {
	received  []id.Instant
	texts     [textColumns][]string
	numbers   [textColumns][]uint16 // of the text of each row
	decisions []byte                // effective*4 + declared

	text []byte // of the record that was decoded; decisions is a part of it
}

// columnsOf returns the columns of at most chunkEvents rows.
func columnsOf(rows []Row) *columns {
	c := &columns{}
	var names [textColumns]dictionary
	for i := range rows {
		r := &rows[i]
		c.received = append(c.received, r.ReceivedAt)
		for n, text := range [textColumns]string{string(r.Agent), string(r.Tool), r.Kind, r.Rule} {
			c.numbers[n] = append(c.numbers[n], uint16(names[n].number(text)))
		}
		c.decisions = append(c.decisions, byte(r.Effective)<<2|byte(r.Declared))
	}
	for n := range names {
		c.texts[n] = names[n].texts
	}
	return c
}

// encode returns the column record of c.
func (c *columns) encode() []byte {
	var b []byte
	var before id.Instant
	for _, at := range c.received {
		b = binary.AppendVarint(b, int64(at-before))
		before = at
	}
	for n, texts := range c.texts {
		b = binary.AppendUvarint(b, uint64(len(texts)))
		for _, text := range texts {
			b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
		}
		for _, number := range c.numbers[n] {
			b = append(b, byte(number))
		}
		if len(texts) > narrow {
			for _, number := range c.numbers[n] {
				b = append(b, byte(number>>8))
			}
		}
	}
	return s2.EncodeBetter(nil, append(b, c.decisions...))
}

// narrow is the maximum number of texts of a dictionary whose numbers have one byte.
const narrow = 1 << 8

// columnReader parses the text of a column record. Its error is sticky.
type columnReader struct {
	rest   []byte
	failed bool
}

func (r *columnReader) uvarint() uint64 {
	if len(r.rest) > 0 && r.rest[0] < 0x80 { // most numbers
		v := uint64(r.rest[0])
		r.rest = r.rest[1:]
		return v
	}
	v, n := binary.Uvarint(r.rest)
	r.skip(n)
	return v
}

func (r *columnReader) varint() int64 {
	v, n := binary.Varint(r.rest)
	r.skip(n)
	return v
}

func (r *columnReader) skip(n int) {
	if n <= 0 || n > len(r.rest) {
		r.failed, r.rest = true, nil
		return
	}
	r.rest = r.rest[n:]
}

func (r *columnReader) text() string { return string(r.bytes(r.uvarint())) }

// bytes returns the next n bytes, or nil if there are fewer.
func (r *columnReader) bytes(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.failed, r.rest = true, nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *columnReader) texts() []string {
	n := r.uvarint()
	if n > chunkEvents {
		r.failed = true
		return nil
	}
	texts := make([]string, 0, n)
	for range n {
		texts = append(texts, r.text())
	}
	return texts
}

func (r *columnReader) byte() byte {
	if len(r.rest) == 0 {
		r.failed = true
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

// openColumns decompresses a record of at most maxText bytes, into buffer if it is large enough.
func openColumns(buffer, record []byte, maxText int) (*columnReader, error) {
	if n, err := s2.DecodedLen(record); err != nil || n > maxText {
		return nil, errColumns("length")
	}
	text, err := s2.Decode(buffer, record)
	if err != nil {
		return nil, errColumns("compression")
	}
	return &columnReader{rest: text}, nil
}

// decode replaces c with the rows of a column record. If the record is damaged, it returns an error, and c is undefined.
func (c *columns) decode(record []byte) error {
	in, err := openColumns(c.text[:cap(c.text)], record, maxColumns)
	if err != nil {
		return err
	}
	c.text, c.received = in.rest, slices.Grow(c.received[:0], chunkEvents)
	var at id.Instant
	for range chunkEvents {
		at += id.Instant(in.varint())
		c.received = append(c.received, at)
	}
	for n := range c.texts {
		c.texts[n] = in.texts()
		if c.numbers[n], err = in.numbers(c.numbers[n][:0], len(c.texts[n])); err != nil {
			return err
		}
	}
	if c.decisions = in.bytes(chunkEvents); in.failed || len(in.rest) > 0 {
		return errColumns("rows")
	}
	return nil
}

// numbers appends the numbers of chunkEvents rows in a dictionary.
func (r *columnReader) numbers(to []uint16, texts int) ([]uint16, error) {
	low := r.bytes(chunkEvents)
	high := low[:0]
	if texts > narrow {
		high = r.bytes(chunkEvents)
	}
	highest := uint16(0)
	to = slices.Grow(to, chunkEvents)
	for i, n := range low {
		number := uint16(n)
		if i < len(high) {
			number |= uint16(high[i]) << 8
		}
		to, highest = append(to, number), max(highest, number)
	}
	if r.failed || int(highest) >= texts {
		return nil, errColumns("numbers")
	}
	return to, nil
}

// maxColumns bounds the text of a column record: each row with four texts of its own.
const maxColumns = chunkEvents * 1024

func errColumns(step string) error { return fmt.Errorf("columns: %s: %w", step, storage.ErrCorrupt) }
