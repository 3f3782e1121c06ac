package index

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/s2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// A column record contains the rows of one chunk, for counts: time, agent, tool, kind, rule and the two decisions. It
// is an s2 block that contains
//
//	four dictionaries: agents, tools, kinds, rules, each a uvarint count and that many texts
//	chunkEvents rows: difference of time to the row before (varint), four numbers (uvarint),
//	and a byte of the decisions, effective*4 + declared
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

// encodeColumns returns the column record of rows.
func encodeColumns(rows []Row) []byte {
	var names [4]dictionary
	var body []byte
	var before id.Instant
	for i := range rows {
		r := &rows[i]
		body = binary.AppendVarint(body, int64(r.ReceivedAt-before))
		before = r.ReceivedAt
		for n, text := range [4]string{string(r.Agent), string(r.Tool), r.Kind, r.Rule} {
			body = binary.AppendUvarint(body, names[n].number(text))
		}
		body = append(body, byte(r.Effective)<<2|byte(r.Declared))
	}
	var b []byte
	for n := range names {
		b = binary.AppendUvarint(b, uint64(len(names[n].texts)))
		for _, text := range names[n].texts {
			b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
		}
	}
	return s2.EncodeBetter(nil, append(b, body...))
}

// columnReader parses the text of a column record. Its error is sticky.
type columnReader struct {
	rest   []byte
	failed bool
}

func (r *columnReader) uvarint() uint64 {
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

func (r *columnReader) text() string {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.failed, r.rest = true, nil
		return ""
	}
	text := string(r.rest[:n])
	r.rest = r.rest[n:]
	return text
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

// choose reads a number of a dictionary.
func (r *columnReader) choose(texts []string) string {
	n := r.uvarint()
	if n >= uint64(len(texts)) {
		r.failed = true
		return ""
	}
	return texts[n]
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

// openColumns decompresses a record of columns or acts.
func openColumns(record []byte) (*columnReader, error) {
	if n, err := s2.DecodedLen(record); err != nil || n > maxColumns {
		return nil, errColumns("length")
	}
	text, err := s2.Decode(nil, record)
	if err != nil {
		return nil, errColumns("compression")
	}
	return &columnReader{rest: text}, nil
}

// visitColumns calls visit with each row of a column record. The row is valid during the call.
func visitColumns(record []byte, begin id.Index, visit func(*Row)) error {
	in, err := openColumns(record)
	if err != nil {
		return err
	}
	agents, tools, kinds, rules := in.texts(), in.texts(), in.texts(), in.texts()
	row := Row{Index: begin}
	for !in.failed && row.Index < begin+chunkEvents {
		row.ReceivedAt += id.Instant(in.varint())
		row.Agent, row.Tool = id.Agent(in.choose(agents)), id.Tool(in.choose(tools))
		row.Kind, row.Rule = in.choose(kinds), in.choose(rules)
		decisions := in.byte()
		if in.failed {
			break
		}
		row.Effective, row.Declared = id.Decision(decisions>>2), id.Decision(decisions&3)
		visit(&row)
		row.Index++
	}
	if in.failed || len(in.rest) > 0 {
		return errColumns("rows")
	}
	return nil
}

// maxColumns bounds the text of a column record: each row with four texts of its own.
const maxColumns = chunkEvents * 1024

func errColumns(step string) error { return fmt.Errorf("columns: %s: %w", step, storage.ErrCorrupt) }
