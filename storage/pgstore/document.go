package pgstore

import (
	_ "embed"
	"encoding/binary"
	"slices"

	"github.com/klauspost/compress/s2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// document is the texts of an event.
//
// Its stored form is one byte for the form; the length of the id, twice, plus one
// if there is an envelope; the length of the record; and an S2 block of id, record and
// envelope, one behind the other. The texts in the block are packed in form 1 (see pack)
// and plain in form 2. Forms 3 and 4 are those of an event that was erased: packed and plain, with the
// index of the erasing event before the block. Forms 5 and 6 are those of an event whose texts are archived: as 3
// and 4, with 0 for an event that was not erased, and no record. The block is made with the dictionary of these forms
// (https://github.com/klauspost/compress/tree/master/s2#dictionaries). Lengths are
// as in encoding/binary's AppendUvarint.
type document struct {
	ID       id.Event
	Record   []byte
	Envelope []byte   // nil when erased
	ErasedBy id.Index // as in storage.Event
	Archived bool     // there are no Record and Envelope any more
}

// documentOf returns the texts of an event.
func documentOf(e *storage.Event) document {
	return document{ID: e.ID, Record: e.Record, Envelope: e.Envelope, ErasedBy: e.ErasedBy}
}

const (
	packedForm   = 1
	plainForm    = 2
	erasedForm   = 2 // more than the form of an event that was not erased
	archivedForm = 4 // more than the form of an event that was neither erased nor archived
)

// plainOf returns the form of texts alone, and whether the event may be erased or is archived.
func plainOf(form byte) (plain byte, isErased, isArchived bool) {
	switch {
	case form > archivedForm:
		return form - archivedForm, true, true
	case form > erasedForm:
		return form - erasedForm, true, false
	}
	return form, false, false
}

// form returns the form of texts, of the erasure and of the archive.
func (d *document) form(plain byte) byte {
	switch {
	case d.Archived:
		return plain + archivedForm
	case d.ErasedBy != 0:
		return plain + erasedForm
	}
	return plain
}

// appendErasure appends the index of the erasing event, if there is one.
func (d *document) appendErasure(dst []byte) []byte {
	if d.ErasedBy == 0 && !d.Archived {
		return dst
	}
	return binary.AppendUvarint(dst, uint64(d.ErasedBy))
}

// parseErasure reads the output of appendErasure and returns the rest of v.
func (d *document) parseErasure(v []byte, isErased bool) (rest []byte, ok bool) {
	if !isErased {
		return v, true
	}
	by, n := binary.Uvarint(v)
	if n <= 0 || by == 0 && !d.Archived {
		return nil, false
	}
	d.ErasedBy = id.Index(by)
	return v[n:], true
}

// dictionary is the text that records and envelopes have in common. It belongs to the forms above
// and MUST NOT be changed: another dictionary makes other forms.
//
//go:embed dictionary.txt
var dictionary []byte

// longest bounds the texts of one event, in bytes. A block with a greater length is damaged. The
// bound is well above the largest event that a service can be configured to accept.
const longest = 64 << 20

// documentCodec reads and writes the stored form. It may be used concurrently.
type documentCodec struct {
	alphabet *alphabet
	dict     *s2.Dict
}

// newDocumentCodec returns a codec, which holds a few kilobytes of tables.
func newDocumentCodec() *documentCodec {
	return &documentCodec{alphabet: newAlphabet(), dict: s2.MakeDictManual(dictionary, 0)}
}

// Append appends the stored form of d to dst. scratch is overwritten and returned for the
// next call.
func (c *documentCodec) Append(dst []byte, d document, scratch []byte) (stored, _ []byte) {
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
	dst = append(dst, d.form(form))
	dst = binary.AppendUvarint(dst, uint64(len(d.ID))<<1|present)
	dst = binary.AppendUvarint(dst, uint64(len(d.Record)))
	dst = d.appendErasure(dst)
	dst = slices.Grow(dst, s2.MaxEncodedLen(len(text)))
	return dst[:len(dst)+len(c.dict.Encode(dst[len(dst):cap(dst)], text))], scratch
}

// Parse reads the stored form; false means that it is none. The result shares
// nothing with v.
func (c *documentCodec) Parse(v []byte) (d document, ok bool) {
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
	form, isErased, isArchived := plainOf(form)
	d.Archived = isArchived
	if v, ok = d.parseErasure(v[n:], isErased); !ok {
		return document{}, false
	}
	text, ok := c.texts(form, v)
	size, envelope := uint64(len(text)), idLength&1 == 1
	idLength >>= 1
	if !ok || idLength > size || recordLength > size-idLength || !envelope && size != idLength+recordLength ||
		envelope && isErased || recordLength > 0 && isArchived {
		return document{}, false
	}
	end := idLength + recordLength
	d.ID = id.Event(text[:idLength])
	if !isArchived {
		d.Record = text[idLength:end:end]
	}
	if envelope {
		d.Envelope = text[end:]
	}
	return d, true
}

// texts returns the texts in a block of a form.
func (c *documentCodec) texts(form byte, block []byte) ([]byte, bool) {
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
