package pgstore

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Numbers of events that are read at a time: entries fill a few hundred kilobytes, and large documents a few megabytes.
const (
	entriesPage   = 1024
	documentsPage = 128
)

const sizeSQL = `SELECT size FROM head WHERE org = $1`

// The rows that contain the events [$2, $3), and the rows that contain the events at the indices $2. The LIMITs force
// the planner to look up each one in the index.
const (
	eventsWithin   = `event WHERE org = $1 AND idx >= $2 AND idx < $3 AND entry IS NOT NULL`
	segmentsWithin = `segment WHERE org = $1 AND idx >= coalesce(
	(SELECT before.idx FROM segment AS before WHERE before.org = $1 AND before.idx <= $2 ORDER BY before.idx DESC LIMIT 1), $2
) AND idx < $3 AND idx + count > $2`
	eventsAt = `unnest($2::int8[]) AS at (at) CROSS JOIN LATERAL (
	SELECT * FROM event WHERE org = $1 AND idx = at AND entry IS NOT NULL LIMIT 1
) AS e`
	segmentsAt = `segment WHERE org = $1 AND idx = ANY (ARRAY(SELECT (
	SELECT before.idx FROM segment AS before WHERE before.org = $1 AND before.idx <= at.idx ORDER BY before.idx DESC LIMIT 1
) FROM unnest($2::int8[]) AS at (idx)))`
)

// eventsSQL returns the statement that reads the selected fields from the rows that contain the events, in order. Count
// is 0 for an event in a separate row; otherwise the row is a segment, which may also contain other events.
func eventsSQL(parts storage.Fields, events, segments string) string {
	event, segment := `SELECT idx, 0::int2 AS count, entry`, `SELECT idx, count, entries`
	if parts&(withColumns|storage.FieldEnvelope) != 0 {
		event, segment = event+`, documents`, segment+`, texts`
	}
	if parts&withColumns != 0 {
		event += `, received_at, effective, disclosure, agent, trace, tool, action_kind`
		segment += `, NULL::int8, NULL::int2, NULL::int2, NULL::bytea, NULL::bytea, NULL::bytea, NULL::bytea`
	}
	return event + ` FROM ` + events + `
UNION ALL ` + segment + ` FROM ` + segments + `
ORDER BY idx`
}

// Events implements storage.Ledgers. It reads page by page, so that a slow consumer holds neither a connection nor a
// snapshot. It uses the size of the ledger at the start of the sequence.
func (e *Engine) Events(ctx context.Context, t id.Tenant, begin, end id.Index, parts storage.Fields) iter.Seq2[storage.Event, error] {
	return func(yield func(storage.Event, error) bool) {
		if err := e.readEvents(ctx, t, begin, end, parts, yield); err != nil {
			yield(storage.Event{}, fmt.Errorf("read events: %w", err))
		}
	}
}

func (e *Engine) readEvents(ctx context.Context, t id.Tenant, begin, end id.Index, parts storage.Fields, yield func(storage.Event, error) bool) error {
	most := id.Index(documentsPage)
	if parts == 0 {
		most = entriesPage
	}
	for {
		pageEnd := end
		if begin < end && end-begin > most {
			pageEnd = begin + most
		}
		r := newEventRow(e.codec, parts)
		r.begin, r.end = begin, end
		page, size, err := e.eventsPage(ctx, t, r, eventsSQL(parts, eventsWithin, segmentsWithin), int64(begin), int64(pageEnd))
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
			return fmt.Errorf("event %d: %w", begin, corruptValue("missing entry"))
		}
	}
}

// EventsAt implements storage.Ledgers, with one round trip.
func (e *Engine) EventsAt(ctx context.Context, t id.Tenant, at []id.Index, of storage.Fields) ([]storage.Event, error) {
	r := newEventRow(e.codec, of)
	r.at = at
	var indices []int64
	for _, i := range at {
		indices = append(indices, int64(i))
	}
	found, size, err := e.eventsPage(ctx, t, r, eventsSQL(of, eventsAt, segmentsAt), indices)
	below, _ := slices.BinarySearch(at, size)
	if err == nil && len(found) < below {
		err = corruptValue("missing entry")
	}
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return found[:below], nil // the others were added in the meantime
}

// eventsPage reads the size of a ledger and then the events that a statement selects. The page never has fewer events
// than the size implies, because events are only added.
func (e *Engine) eventsPage(
	ctx context.Context, t id.Tenant, r *eventRow, sql string, of ...any,
) (page []storage.Event, size id.Index, err error) {
	if err := e.beginCall(ctx); err != nil {
		return nil, 0, err
	}
	defer e.endCall()
	var batch pgx.Batch
	batch.Queue(sizeSQL, int64(t))
	if r.at != nil || r.begin < r.end {
		batch.Queue(sql, append([]any{int64(t)}, of...)...)
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
	if batch.Len() > 1 {
		page, err = r.readEvents(results)
	}
	return page, id.Index(stored), readError(err)
}

const entriesSQL = `SELECT place.n, e.entry
FROM unnest($1::int8[], $2::int8[]) WITH ORDINALITY AS place (org, idx, n)
CROSS JOIN LATERAL (
	SELECT entry FROM event WHERE event.org = place.org AND event.idx = place.idx AND event.entry IS NOT NULL LIMIT 1
) AS e
UNION ALL SELECT place.n, substring(s.entries FROM least(place.idx - s.idx, s.count)::int4 * 64 + 1 FOR 64)
FROM unnest($1::int8[], $2::int8[]) WITH ORDINALITY AS place (org, idx, n)
CROSS JOIN LATERAL (
	SELECT idx, count, entries FROM segment WHERE segment.org = place.org AND segment.idx <= place.idx
	ORDER BY segment.idx DESC LIMIT 1
) AS s
WHERE place.idx - s.idx < s.count`

// entryOneSQL is entriesSQL for one place, the most common case of appends. It takes the server half as long to set up.
const entryOneSQL = `SELECT 1::int8, entry FROM event WHERE org = $1 AND idx = $2 AND entry IS NOT NULL
UNION ALL SELECT 1::int8, substring(s.entries FROM least($2 - s.idx, s.count)::int4 * 64 + 1 FOR 64)
FROM (SELECT idx, count, entries FROM segment WHERE org = $1 AND idx <= $2 ORDER BY idx DESC LIMIT 1) AS s
WHERE $2 - s.idx < s.count`

// Entries implements storage.Ledgers.
func (e *Engine) Entries(ctx context.Context, places []storage.Position) []storage.EntryResult {
	found := make([]storage.EntryResult, len(places))
	err := e.readEntries(ctx, places, found)
	for i := range found {
		if err != nil || found[i].Err != nil {
			found[i].Err = fmt.Errorf("read entry %d: %w", places[i].Index, cmp.Or(err, found[i].Err))
		}
	}
	return found
}

// readEntries sets the results of the entries that exist.
func (e *Engine) readEntries(ctx context.Context, places []storage.Position, found []storage.EntryResult) error {
	if err := e.beginCall(ctx); err != nil {
		return err
	}
	defer e.endCall()
	var tenants, indices []int64
	for i, p := range places {
		found[i].Err = storage.ErrNotFound
		tenants, indices = append(tenants, int64(p.Tenant)), append(indices, int64(p.Index))
	}
	sql, args := entriesSQL, []any{tenants, indices}
	if len(places) == 1 {
		sql, args = entryOneSQL, []any{tenants[0], indices[0]}
	}
	rows, err := e.pool.Query(ctx, sql, args...)
	if err != nil {
		return readError(err)
	}
	var n int64 // starts at 1
	var entry pgtype.DriverBytes
	_, err = pgx.ForEachRow(rows, []any{&n, &entry}, func() error {
		if found[n-1].Err = nil; !parseEntry(&found[n-1].Entry, entry) {
			found[n-1].Err = corruptValue("entry")
		}
		return nil
	})
	return readError(err)
}
