package pgstore

import "github.com/agentledger/agentledger/id"

// EraseDocument returns the stored form v without its envelope, erased by an event; nil when it was
// erased before. False means that v is none.
func (c *documentCodec) EraseDocument(v []byte, by id.Index) (stored []byte, ok bool) {
	d, ok := c.Parse(v)
	if !ok || d.ErasedBy != 0 {
		return nil, ok
	}
	d.Envelope, d.ErasedBy = nil, by
	stored, _ = c.Append(nil, d, nil)
	return stored, true
}

// EraseMembers returns a stored segment of count members without the envelopes of those of which by
// returns the erasing event, and not 0; nil when these were erased before. False means that v is none.
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

// DropDocument returns the stored form v without record and envelope; nil when they were dropped before.
// False means that v is none.
func (c *documentCodec) DropDocument(v []byte) (stored []byte, ok bool) {
	d, ok := c.Parse(v)
	if !ok || d.Archived {
		return nil, ok
	}
	d.drop()
	stored, _ = c.Append(nil, d, nil)
	return stored, true
}

// DropMembers returns a stored segment of count members without record and envelope of those that drop
// reports; nil when these were dropped before. False means that v is none.
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
