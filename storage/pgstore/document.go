package pgstore

import (
	_ "embed"
	"encoding/binary"
	"slices"

	"github.com/klauspost/compress/s2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// document contains the texts of an event that are compressed and stored together.
//
// PostgreSQL compresses only rows of more than about 2,000 bytes, and the row of an event is shorter. So the program
// compresses the texts. This halves the bytes that are sent, logged and stored, and saves the server more work than it
// costs the program. ID, record and envelope are compressed together, because the IDs and the signature occur in each of
// them. This takes a third less space than compressing them separately.
//
// The stored form is one byte for the form; the length of the ID times two, plus one if there is an envelope; the length
// of the record; and an S2 block of ID, record and envelope. The texts in the block are packed in form 1 (see pack) and
// plain in form 2. Forms 3 and 4 are for an erased event: packed and plain, with the index of the erasing event before the
// block. Forms 5 and 6 are for an event whose texts are archived: like 3 and 4, with index 0 if the event was not erased,
// and without a record. The block uses the dictionary of these forms
// (https://github.com/klauspost/compress/tree/master/s2#dictionaries). Lengths are encoded by binary.AppendUvarint.
//
//   - Stored data stays readable permanently: a form is never changed, and a new form gets a new number.
//   - Any bytes are returned unchanged, whether they are canonical JSON or not.
//   - Damaged bytes are rejected or decoded to another text, which the layer above detects because it knows the hash.
//     Decoding them takes no more memory than a large event.
type document struct {
	ID       id.Event
	Record   []byte
	Envelope []byte   // nil if erased
	ErasedBy id.Index // as in storage.Event
	Archived bool     // Record and Envelope are no longer here
}

// documentOf returns the texts of an event.
func documentOf(e *storage.Event) document {
	return document{ID: e.ID, Record: e.Record, Envelope: e.Envelope, ErasedBy: e.ErasedBy}
}

const (
	packedForm   = 1
	plainForm    = 2
	erasedForm   = 2 // added to the form of an event that was erased
	archivedForm = 4 // added to the form of an event that is archived
)

// plainOf returns packedForm or plainForm, and whether the event may be erased or is archived.
func plainOf(form byte) (plain byte, isErased, isArchived bool) {
	switch {
	case form > archivedForm:
		return form - archivedForm, true, true
	case form > erasedForm:
		return form - erasedForm, true, false
	}
	return form, false, false
}

// form returns the form of d, whose texts have the given packed or plain form.
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

// dictionary is the text that records and envelopes have in common. It is part of the forms above and must not be
// changed: another dictionary requires new forms.
//
//go:embed dictionary.txt
var dictionary []byte

// longest bounds the texts of one event, in bytes. A block that claims more is damaged. The bound is well above the
// largest event that a service can be configured to accept.
const longest = 64 << 20

// documentCodec encodes and decodes stored forms of documents and segments. It may be used concurrently.
type documentCodec struct {
	alphabet *alphabet
	dict     *s2.Dict
}

// newDocumentCodec returns a codec, which takes a few kilobytes.
func newDocumentCodec() *documentCodec {
	return &documentCodec{alphabet: newAlphabet(), dict: s2.MakeDictManual(dictionary, 0)}
}

// Append appends the stored form of d to dst. It overwrites scratch and returns it for the next call.
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

// Parse decodes a stored form. ok reports whether it is valid. The result shares no memory with v.
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

// texts decodes the texts in a block, which has the given form.
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

// EraseDocument returns the stored form v without its envelope, erased by an event, or nil if it was already erased. ok
// reports whether v is valid.
func (c *documentCodec) EraseDocument(v []byte, by id.Index) (stored []byte, ok bool) {
	d, ok := c.Parse(v)
	if !ok || d.ErasedBy != 0 {
		return nil, ok
	}
	d.Envelope, d.ErasedBy = nil, by
	stored, _ = c.Append(nil, d, nil)
	return stored, true
}

// EraseMembers returns a stored segment of count members without the envelopes of the members for which by returns an
// erasing event instead of 0, or nil if they were all erased already. ok reports whether v is valid.
func (c *documentCodec) EraseMembers(v []byte, count int, by func(member int) id.Index) (stored []byte, ok bool) {
	members, ok := c.ParseSegment(v, 0, count)
	if !ok {
		return nil, false
	}
	changed := false
	for i := range members {
		if m := &members[i]; m.ErasedBy == 0 && by(i) != 0 {
			m.Envelope, m.ErasedBy, changed = nil, by(i), true
		}
	}
	if !changed {
		return nil, true
	}
	return c.AppendSegment(nil, members, new(documentScratch)), true
}

// DropDocument returns the stored form v without record and envelope, or nil if they were already dropped. ok reports
// whether v is valid.
func (c *documentCodec) DropDocument(v []byte) (stored []byte, ok bool) {
	d, ok := c.Parse(v)
	if !ok || d.Archived {
		return nil, ok
	}
	d.drop()
	stored, _ = c.Append(nil, d, nil)
	return stored, true
}

// DropMembers returns a stored segment of count members without record and envelope of the members that drop reports, or
// nil if they were all dropped already. ok reports whether v is valid.
func (c *documentCodec) DropMembers(v []byte, count int, drop func(member int) bool) (stored []byte, ok bool) {
	members, ok := c.ParseSegment(v, 0, count)
	if !ok {
		return nil, false
	}
	changed := false
	for i := range members {
		if m := &members[i]; !m.Archived && drop(i) {
			m.drop()
			changed = true
		}
	}
	if !changed {
		return nil, true
	}
	return c.AppendSegment(nil, members, new(documentScratch)), true
}

func (d *document) drop() { d.Record, d.Envelope, d.Archived = nil, nil, true }
