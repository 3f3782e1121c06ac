package pgstore

import (
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// readEvents returns the requested events in rows of eventsSQL.
func (r *eventRow) readEvents(results pgx.BatchResults) ([]storage.Event, error) {
	rows, err := results.Query()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var page []storage.Event
	for rows.Next() {
		if err := rows.Scan(r.into...); err != nil {
			return nil, err
		}
		if page, err = r.appendEvents(page); err != nil {
			return nil, err
		}
	}
	return page, rows.Err()
}

// eventRow scans rows of eventsSQL. The driver's bytes are valid only until the next row.
type eventRow struct {
	begin, end               id.Index   // of the requested events
	at                       []id.Index // requested indices in ascending order; if nil, all in [begin, end)
	codec                    *documentCodec
	parts                    storage.Fields
	index                    int64
	count                    int16
	entries, texts           pgtype.DriverBytes
	received                 pgtype.Int8
	effective, disclosure    pgtype.Int2
	agent, trace, tool, kind pgtype.DriverBytes
	into                     []any
}

func newEventRow(c *documentCodec, parts storage.Fields) *eventRow {
	r := &eventRow{codec: c, parts: parts}
	r.into = []any{&r.index, &r.count, &r.entries}
	if r.withTexts() {
		r.into = append(r.into, &r.texts)
	}
	if parts&withColumns != 0 {
		r.into = append(r.into, &r.received, &r.effective, &r.disclosure, &r.agent, &r.trace, &r.tool, &r.kind)
	}
	return r
}

// withColumns are the fields for which ID and Columns are read.
const withColumns = storage.FieldRecord | storage.FieldColumns

func (r *eventRow) withTexts() bool { return r.parts&(withColumns|storage.FieldEnvelope) != 0 }

// appendEvents appends the requested events of the row.
func (r *eventRow) appendEvents(page []storage.Event) ([]storage.Event, error) {
	first, begin, end := id.Index(r.index), r.begin, r.end
	if r.count == 0 {
		m, err := r.alone()
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", first, err)
		}
		return r.appendEvent(page, first, r.entries, &m)
	}
	if r.at != nil {
		low, _ := slices.BinarySearch(r.at, first)
		high, _ := slices.BinarySearch(r.at, first+id.Index(r.count))
		if low == high { // the segment ends before the requested event
			return page, nil
		}
		begin, end = r.at[low], r.at[high-1]+1
	}
	from, to := begin-min(begin, first), min(end-first, id.Index(r.count))
	if len(r.entries) != int(r.count)*entryLen || from >= to {
		return nil, fmt.Errorf("event %d: %w", first, corruptValue("segment"))
	}
	members := make([]documentMember, to-from)
	if r.withTexts() {
		var ok bool
		if members, ok = r.codec.ParseSegment(r.texts, int(from), int(to)); !ok {
			return nil, fmt.Errorf("event %d: %w", first, corruptValue("segment"))
		}
	}
	for i := range members {
		at := int(from) + i
		if _, requested := slices.BinarySearch(r.at, first+id.Index(at)); r.at != nil && !requested {
			continue
		}
		var err error
		if page, err = r.appendEvent(page, first+id.Index(at), r.entries[at*entryLen:(at+1)*entryLen], &members[i]); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// alone decodes the event of a row that contains only one.
func (r *eventRow) alone() (m documentMember, err error) {
	if !r.withTexts() {
		return m, nil
	}
	var ok bool
	if m.document, ok = r.codec.Parse(r.texts); !ok {
		return m, corruptValue("documents")
	}
	m.Columns = storage.Columns{
		ReceivedAt: id.Instant(r.received.Int64), Agent: id.Agent(r.agent), Trace: id.Trace(r.trace), Tool: id.Tool(r.tool),
		ActionKind: string(r.kind), Effective: id.Decision(r.effective.Int16), Disclosure: id.Disclosure(r.disclosure.Int16),
	}
	return m, nil
}

// appendEvent appends an event with the requested fields.
func (r *eventRow) appendEvent(page []storage.Event, index id.Index, entry []byte, m *documentMember) ([]storage.Event, error) {
	e := storage.Event{Index: index}
	if !parseEntry(&e.Entry, entry) {
		return nil, fmt.Errorf("event %d: %w", index, corruptValue("entry"))
	}
	e.Archived = m.Archived
	if r.parts&withColumns != 0 {
		e.ID, e.Columns = m.ID, m.Columns
	}
	if r.parts&storage.FieldRecord != 0 {
		e.Record = m.Record
	}
	if r.parts&storage.FieldEnvelope != 0 {
		e.Envelope, e.ErasedBy = m.Envelope, m.ErasedBy
	}
	return append(page, e), nil
}

// entryLen is the length of a stored entry: its two hashes.
const entryLen = 2 * len(id.Hash{})

// parseEntry parses a stored entry and reports whether its length is valid.
func parseEntry(e *storage.Entry, v []byte) bool {
	const half = len(id.Hash{})
	return len(v) == entryLen && parseHash(&e.Prev, v[:half]) && parseHash(&e.Record, v[half:])
}
