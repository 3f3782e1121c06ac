package pgstore

import (
	"context"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore/document"
)

// How many events are read at a time: as many entries as fill a few hundred
// kilobytes, and as many documents as are some megabytes when they are large.
const (
	entriesPage   = 1024
	documentsPage = 128
)

const sizeSQL = `SELECT size FROM head WHERE org = $1`

// What the statements of eventsSQL are made of.
const (
	entryColumns    = `SELECT idx, entry`
	documentColumns = `, documents`
	recordColumnsOf = `, received_at, effective, disclosure, agent, trace, tool, action_kind`
	eventsFrom      = ` FROM event WHERE org = $1 AND idx >= $2 AND idx < $3 ORDER BY idx`
)

// eventsSQL returns the statement for parts.
func eventsSQL(parts storage.Part) string {
	switch {
	case parts&storage.Records != 0:
		return entryColumns + documentColumns + recordColumnsOf + eventsFrom
	case parts&storage.Envelopes != 0:
		return entryColumns + documentColumns + eventsFrom
	}
	return entryColumns + eventsFrom
}

// Events implements storage.Ledgers. It reads page by page, so that a slow
// consumer holds neither a connection nor a snapshot; the size that counts is the
// one when the sequence begins.
func (e *Engine) Events(ctx context.Context, t id.Tenant, begin, end id.Index, parts storage.Part) iter.Seq2[storage.Event, error] {
	return func(yield func(storage.Event, error) bool) {
		if err := e.events(ctx, t, begin, end, parts, yield); err != nil {
			yield(storage.Event{}, fmt.Errorf("read events: %w", err))
		}
	}
}

func (e *Engine) events(ctx context.Context, t id.Tenant, begin, end id.Index, parts storage.Part, yield func(storage.Event, error) bool) error {
	most := id.Index(documentsPage)
	if parts == 0 {
		most = entriesPage
	}
	for {
		pageEnd := end
		if begin < end && end-begin > most {
			pageEnd = begin + most
		}
		page, size, err := e.eventsPage(ctx, t, begin, pageEnd, parts)
		if err != nil {
			return err
		}
		end = min(end, size)
		for i := range page {
			if err := ctx.Err(); err != nil {
				return err
			}
			if page[i].Index != begin || begin >= end {
				break
			}
			if !yield(page[i], nil) {
				return nil
			}
			begin++
		}
		switch {
		case begin >= end:
			return nil
		case begin < pageEnd:
			return fmt.Errorf("event %d: %w", begin, corrupt("missing entry"))
		}
	}
}

// eventsPage reads the size of a ledger and then events that are there. They are
// never fewer than the size says, since events are only ever added.
func (e *Engine) eventsPage(ctx context.Context, t id.Tenant, begin, end id.Index, parts storage.Part) (page []storage.Event, size id.Index, err error) {
	if err := e.enter(ctx); err != nil {
		return nil, 0, err
	}
	defer e.leave()
	var batch pgx.Batch
	batch.Queue(sizeSQL, int64(t))
	if begin < end {
		batch.Queue(eventsSQL(parts), int64(t), int64(begin), int64(end))
	}
	results := e.pool.SendBatch(ctx, &batch)
	defer func() {
		if closeErr := results.Close(); err == nil {
			err = readError(closeErr)
		}
	}()
	var stored int64
	if err := results.QueryRow().Scan(&stored); err != nil {
		return nil, 0, readError(err)
	}
	if begin < end {
		page, err = readEvents(e.codec, results, parts)
	}
	return page, id.Index(stored), readError(err)
}

const entriesSQL = `SELECT place.n, event.entry
FROM unnest($1::int8[], $2::int8[]) WITH ORDINALITY AS place (org, idx, n)
JOIN event ON event.org = place.org AND event.idx = place.idx`

// Entries implements storage.Ledgers.
func (e *Engine) Entries(ctx context.Context, places []storage.Place) []storage.Found {
	found := make([]storage.Found, len(places))
	for i := range found {
		found[i].Err = fmt.Errorf("read entry %d: %w", places[i].Index, storage.ErrNotFound)
	}
	if err := e.entries(ctx, places, found); err != nil {
		for i := range found {
			found[i] = storage.Found{Err: fmt.Errorf("read entry %d: %w", places[i].Index, err)}
		}
	}
	return found
}

// entries sets those of found that are there.
func (e *Engine) entries(ctx context.Context, places []storage.Place, found []storage.Found) error {
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.leave()
	if len(places) == 0 {
		return nil
	}
	tenants, indices := make([]int64, len(places)), make([]int64, len(places))
	for i, p := range places {
		tenants[i], indices[i] = int64(p.Tenant), int64(p.Index)
	}
	rows, err := e.pool.Query(ctx, entriesSQL, tenants, indices)
	if err != nil {
		return readError(err)
	}
	var n int64 // from 1
	var entry pgtype.DriverBytes
	_, err = pgx.ForEachRow(rows, []any{&n, &entry}, func() error {
		f := &found[n-1]
		f.Err = nil
		if !parseEntry(&f.Entry, entry) {
			f.Err = corrupt("entry")
		}
		return nil
	})
	return readError(err)
}

func readEvents(codec *document.Codec, results pgx.BatchResults, parts storage.Part) ([]storage.Event, error) {
	rows, err := results.Query()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var page []storage.Event
	r := newEventRow(codec, parts)
	for rows.Next() {
		e, err := r.read(rows)
		if err != nil {
			return nil, err
		}
		page = append(page, e)
	}
	return page, rows.Err()
}

// eventRow reads rows of table event. Its driver's bytes are valid for one row.
type eventRow struct {
	codec                    *document.Codec
	parts                    storage.Part
	index, received          int64
	effective, disclosure    int16
	entry, documents         pgtype.DriverBytes
	agent, trace, tool, kind pgtype.DriverBytes
	into                     []any
}

func newEventRow(c *document.Codec, parts storage.Part) *eventRow {
	r := &eventRow{codec: c, parts: parts}
	r.into = []any{&r.index, &r.entry}
	if parts&(storage.Records|storage.Envelopes) != 0 {
		r.into = append(r.into, &r.documents)
	}
	if parts&storage.Records != 0 {
		r.into = append(r.into, &r.received, &r.effective, &r.disclosure, &r.agent, &r.trace, &r.tool, &r.kind)
	}
	return r
}

func (r *eventRow) read(rows pgx.Rows) (storage.Event, error) {
	if err := rows.Scan(r.into...); err != nil {
		return storage.Event{}, err
	}
	e := storage.Event{Index: id.Index(r.index)}
	if !parseEntry(&e.Entry, r.entry) {
		return e, fmt.Errorf("event %d: %w", e.Index, corrupt("entry"))
	}
	if r.parts&(storage.Records|storage.Envelopes) == 0 {
		return e, nil
	}
	d, ok := r.codec.Parse(r.documents)
	if !ok {
		return e, fmt.Errorf("event %d: %w", e.Index, corrupt("documents"))
	}
	if r.parts&storage.Envelopes != 0 {
		e.Envelope = d.Envelope
	}
	if r.parts&storage.Records == 0 {
		return e, nil
	}
	e.ID, e.Record = d.ID, d.Record
	e.Columns = storage.Columns{
		ReceivedAt: id.Instant(r.received), Agent: id.Agent(r.agent), Trace: id.Trace(r.trace), Tool: id.Tool(r.tool),
		ActionKind: string(r.kind), Effective: id.Decision(r.effective), Disclosure: id.Disclosure(r.disclosure),
	}
	return e, nil
}

// parseEntry reads a stored entry and reports whether it has its length.
func parseEntry(e *storage.Entry, v []byte) bool {
	const half = len(id.Hash{})
	return len(v) == 2*half && hash(&e.Prev, v[:half]) && hash(&e.Record, v[half:])
}
