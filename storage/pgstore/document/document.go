// Package document is the form that package pgstore stores an event's texts in.
//
// PostgreSQL compresses rows of more than about 2,000 bytes alone, and an event's is
// shorter. So the program does it: what is sent, logged and stored is half as long,
// and the server has less to do than the program spends on it. Id, record and
// envelope go together, since ids and signature are in each of them; that takes a
// third less than apart.
//
// Invariants:
//
//   - What was written is read for ever: a form is never changed, another one gets
//     a number of its own.
//   - Any bytes come back as they were, canonical JSON or not.
//   - Damaged bytes are found to be, or read as something else; they take no more
//     memory than a large event. What a text should be is known by its hash, above.
package document

import (
	_ "embed"
	"encoding/binary"
	"slices"

	"github.com/klauspost/compress/s2"

	"github.com/agentledger/agentledger/id"
)

// Document is the texts of an event.
//
// Its stored form is one byte for the form; the length of the id, twice, plus one
// if there is an envelope; the length of the record; and id, record and envelope
// one behind the other, in form 1 packed (see pack) and in form 2 not, as an S2 block
// with the dictionary of these forms
// (https://github.com/klauspost/compress/tree/master/s2#dictionaries). Lengths are
// as in encoding/binary's AppendUvarint.
type Document struct {
	ID       id.Event
	Record   []byte
	Envelope []byte // nil when erased
}

const (
	packedForm = 1
	plainForm  = 2
)

// dictionary is what records and envelopes have in common. It belongs to the forms
// above and is never changed: another one makes other forms.
//
//go:embed dictionary.txt
var dictionary []byte

// longest bounds the texts of one event: what claims to be longer is damaged. It
// is well above the largest event that a service can be told to take.
const longest = 64 << 20

// Codec reads and writes the stored form. It may be used concurrently.
type Codec struct {
	alphabet *alphabet
	dict     *s2.Dict
}

// NewCodec returns a codec, which holds a few kilobytes of tables.
func NewCodec() *Codec {
	return &Codec{alphabet: newAlphabet(), dict: s2.MakeDictManual(dictionary, 0)}
}

// Append appends the stored form of d to dst. scratch is overwritten and returned for the
// next call.
func (c *Codec) Append(dst []byte, d Document, scratch []byte) (stored, _ []byte) {
	present := uint64(0)
	if d.Envelope != nil {
		present = 1
	}
	scratch = append(append(append(scratch[:0], d.ID...), d.Record...), d.Envelope...)
	length := len(scratch)
	form, text := byte(packedForm), scratch
	if packed, ok := c.alphabet.pack(scratch, scratch); ok {
		scratch, text = packed, packed[length:]
	} else {
		form = plainForm
	}
	dst = append(dst, form)
	dst = binary.AppendUvarint(dst, uint64(len(d.ID))<<1|present)
	dst = binary.AppendUvarint(dst, uint64(len(d.Record)))
	dst = slices.Grow(dst, s2.MaxEncodedLen(len(text)))
	return dst[:len(dst)+len(c.dict.Encode(dst[len(dst):cap(dst)], text))], scratch
}

// Parse reads the stored form; false means that it is none. The result shares
// nothing with v.
func (c *Codec) Parse(v []byte) (d Document, ok bool) {
	if len(v) == 0 {
		return d, false
	}
	form, v := v[0], v[1:]
	idLength, n := binary.Uvarint(v)
	if n <= 0 {
		return d, false
	}
	v = v[n:]
	recordLength, n := binary.Uvarint(v)
	if n <= 0 {
		return d, false
	}
	text, ok := c.texts(form, v[n:])
	size, envelope := uint64(len(text)), idLength&1 == 1
	idLength >>= 1
	if !ok || idLength > size || recordLength > size-idLength || !envelope && size != idLength+recordLength {
		return d, false
	}
	end := idLength + recordLength
	d.ID, d.Record = id.Event(text[:idLength]), text[idLength:end:end]
	if envelope {
		d.Envelope = text[end:]
	}
	return d, true
}

// texts returns what a block of a form holds.
func (c *Codec) texts(form byte, block []byte) ([]byte, bool) {
	if claimed, err := s2.DecodedLen(block); err != nil || claimed > longest {
		return nil, false
	}
	text, err := c.dict.Decode(nil, block)
	if err != nil {
		return nil, false
	}
	if form == plainForm {
		return text, true
	}
	return c.unpacked(form, text)
}
