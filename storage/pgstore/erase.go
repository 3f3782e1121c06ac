package pgstore

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore/document"
)

const (
	eraseEventSQL   = `UPDATE event SET documents = $3 WHERE org = $1 AND idx = $2 AND entry IS NOT NULL`
	eraseSegmentSQL = `UPDATE segment SET texts = $3 WHERE org = $1 AND idx = $2`
)

// eraser writes the rows anew of events that lose their envelopes.
type eraser struct {
	codec   *document.Codec
	org     int64
	by      map[id.Index]id.Index // erasing events
	last    int64                 // row that was read last
	found   int                   // events of by
	updates pgx.Batch
}

// eraseEnvelopes writes the rows of events anew that a batch erases. The transaction holds the head, so
// that no other one writes these rows.
func eraseEnvelopes(ctx context.Context, tx pgx.Tx, codec *document.Codec, b *storage.Batch) error {
	e := eraser{codec: codec, org: int64(b.Tenant), by: b.ErasedBy(), last: -1}
	for at := range slices.Chunk(slices.Sorted(maps.Keys(e.by)), documentsPage) {
		rows, err := tx.Query(ctx, eventsSQL(storage.FieldEnvelope, eventsAt, segmentsAt), e.org, at)
		if err != nil {
			return err
		}
		var row int64
		var count int16
		var entries, texts []byte
		into := []any{&row, &count, &entries, &texts}
		if _, err = pgx.ForEachRow(rows, into, func() error { return e.eraseRow(row, int(count), texts) }); err != nil {
			return err
		}
	}
	if e.found != len(e.by) {
		return corruptValue("missing event")
	}
	return tx.SendBatch(ctx, &e.updates).Close()
}

// eraseRow queues the update of a row, if it has events to erase. Rows come in their order, and a row may
// come again in the next chunk of indices.
func (e *eraser) eraseRow(row int64, count int, texts []byte) error {
	if row <= e.last {
		return nil
	}
	e.last = row
	by := func(member int) id.Index { return e.by[id.Index(row)+id.Index(member)] }
	before := e.found
	for i := range max(count, 1) {
		if by(i) != 0 {
			e.found++
		}
	}
	if e.found == before {
		return nil
	}
	sql := eraseSegmentSQL
	stored, ok := e.codec.EraseMembers(texts, count, by)
	if count == 0 {
		sql = eraseEventSQL
		stored, ok = e.codec.EraseDocument(texts, by(0))
	}
	if !ok {
		return fmt.Errorf("erase event %d: %w", row, corruptValue("documents"))
	}
	if stored != nil {
		e.updates.Queue(sql, e.org, row, stored)
	}
	return nil
}
