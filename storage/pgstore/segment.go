package pgstore

import (
	"encoding/binary"
	"slices"

	"github.com/klauspost/compress/s2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Consecutive events are usually similar. A segment is therefore compressed as a whole, and takes two thirds of the space
// that its events would take separately.
//
// Its stored form is one byte for the form and an S2 block of the members' parts. A part begins with the length of its
// rest (uvarint). The rest is, in this order:
//
//   - received_at (varint);
//   - effective decision and disclosure (a byte each);
//   - 1 if the texts after the lengths are packed (see pack), else 2, plus 2 if the event was erased, or plus 4 if it is
//     archived (a byte);
//   - the lengths of agent, trace, tool and action kind (uvarint each);
//   - the length of the ID times two, plus one if there is an envelope (uvarint);
//   - the length of the record (uvarint);
//   - if the event was erased or is archived, the index of the erasing event, or 0 if there is none (uvarint);
//   - all these texts, the envelope last.
const segmentForm = 1

// documentMember is an event of a segment.
type documentMember struct {
	storage.Columns
	document
}

// columnTexts is the number of texts before the ID.
const columnTexts = 4

func (m *documentMember) texts() [columnTexts]string {
	return [columnTexts]string{string(m.Agent), string(m.Trace), string(m.Tool), m.ActionKind}
}

// documentScratch is memory that consecutive calls of AppendSegment reuse.
type documentScratch struct {
	body, text []byte
}

// AppendSegment appends the stored form of a segment to dst.
func (c *documentCodec) AppendSegment(dst []byte, members []documentMember, s *documentScratch) []byte {
	s.body = s.body[:0]
	for i := range members {
		s.body = c.appendMember(s.body, &members[i], s)
	}
	dst = append(dst, segmentForm)
	dst = slices.Grow(dst, s2.MaxEncodedLen(len(s.body)))
	return dst[:len(dst)+len(s2.Encode(dst[len(dst):cap(dst)], s.body))]
}

func (c *documentCodec) appendMember(body []byte, m *documentMember, s *documentScratch) []byte {
	texts := m.texts()
	s.text = s.text[:0]
	for _, t := range texts {
		s.text = append(s.text, t...)
	}
	s.text = append(append(append(s.text, m.ID...), m.Record...), m.Envelope...)
	length, form, text := len(s.text), byte(packedForm), s.text
	if packed, ok := c.alphabet.pack(s.text, s.text); ok {
		s.text, text = packed, packed[length:]
	} else {
		form = plainForm
	}
	var buffer [2*binary.MaxVarintLen64 + 3 + (columnTexts+3)*binary.MaxVarintLen64]byte
	head := binary.AppendVarint(buffer[:0], int64(m.ReceivedAt))
	head = append(head, byte(m.Effective), byte(m.Disclosure), m.form(form))
	for _, t := range texts {
		head = binary.AppendUvarint(head, uint64(len(t)))
	}
	present := uint64(0)
	if m.Envelope != nil {
		present = 1
	}
	head = binary.AppendUvarint(head, uint64(len(m.ID))<<1|present)
	head = binary.AppendUvarint(head, uint64(len(m.Record)))
	head = m.appendErasure(head)
	body = binary.AppendUvarint(body, uint64(len(head)+len(text)))
	return append(append(body, head...), text...)
}

// ParseSegment parses the members [begin, end) of a stored segment. ok is false if v is not a segment or has fewer
// members. The result shares no memory with v.
func (c *documentCodec) ParseSegment(v []byte, begin, end int) (members []documentMember, ok bool) {
	if len(v) == 0 || v[0] != segmentForm {
		return nil, false
	}
	if claimed, err := s2.DecodedLen(v[1:]); err != nil || claimed > longest {
		return nil, false
	}
	body, err := s2.Decode(nil, v[1:])
	if err != nil {
		return nil, false
	}
	for i := 0; i < end; i++ {
		length, n := binary.Uvarint(body)
		if n <= 0 || length > uint64(len(body)-n) {
			return nil, false
		}
		part := body[n : n+int(length)]
		body = body[n+int(length):]
		if i < begin {
			continue
		}
		m, ok := c.parseMember(part)
		if !ok {
			return nil, false
		}
		members = append(members, m)
	}
	return members, true
}

func (c *documentCodec) parseMember(v []byte) (m documentMember, ok bool) {
	received, n := binary.Varint(v)
	if n <= 0 || len(v) < n+3 {
		return m, false
	}
	m.ReceivedAt, m.Effective, m.Disclosure = id.Instant(received), id.Decision(v[n]), id.Disclosure(v[n+1])
	form, isErased, isArchived := plainOf(v[n+2])
	m.Archived = isArchived
	v = v[n+3:]
	var lengths [columnTexts + 2]uint64
	for i := range lengths {
		if lengths[i], n = binary.Uvarint(v); n <= 0 {
			return m, false
		}
		v = v[n:]
	}
	if v, ok = m.parseErasure(v, isErased); !ok {
		return m, false
	}
	text, ok := c.unpacked(form, v)
	if !ok || isErased && lengths[columnTexts]&1 == 1 || isArchived && lengths[columnTexts+1] > 0 {
		return m, false
	}
	envelope := lengths[columnTexts]&1 == 1
	lengths[columnTexts] >>= 1
	var all [columnTexts + 2][]byte
	for i, length := range lengths {
		if length > uint64(len(text)) {
			return m, false
		}
		all[i], text = text[:length:length], text[length:]
	}
	m.Agent, m.Trace, m.Tool, m.ActionKind = id.Agent(all[0]), id.Trace(all[1]), id.Tool(all[2]), string(all[3])
	if m.ID = id.Event(all[4]); !isArchived {
		m.Record = all[5]
	}
	if envelope {
		m.Envelope = text
	}
	return m, envelope || len(text) == 0
}

// unpacked returns the plain texts of a form, in new memory.
func (c *documentCodec) unpacked(form byte, text []byte) ([]byte, bool) {
	switch form {
	case packedForm:
		return c.alphabet.unpack(make([]byte, 0, len(text)+len(text)/3), text)
	case plainForm:
		return slices.Clone(text), true
	}
	return nil, false
}
