package pgstore

import (
	"context"
	"fmt"
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

func documentOf(e *storage.Event) document.Document {
	return document.Document{ID: e.ID, Record: e.Record, Envelope: e.Envelope, ErasedBy: e.ErasedBy}
}

// erases reports whether an event of the batch erases others.
func (p part) erases() bool {
	return slices.ContainsFunc(p.Events, func(e storage.Event) bool { return len(e.Erases) > 0 })
}

// eraseEnvelopes writes the rows of events anew that a batch erases. The transaction holds the head, so
// that no other one writes these rows.
func eraseEnvelopes(ctx context.Context, tx pgx.Tx, codec *document.Codec, b *storage.Batch) error {
	by := b.ErasedBy()
	if len(by) == 0 {
		return nil
	}
	var updates pgx.Batch
	found, last := 0, int64(-1)
	for begin, end := range pageIndices(by) {
		rows, err := tx.Query(ctx, eventsSQL(storage.FieldEnvelope), int64(b.Tenant), int64(begin), int64(end))
		if err != nil {
			return err
		}
		var idx int64
		var count int16
		var entries, texts []byte
		_, err = pgx.ForEachRow(rows, []any{&idx, &count, &entries, &texts}, func() error {
			if idx == last { // a segment that the page before ended in
				return nil
			}
			last = idx
			n, err := eraseRow(codec, &updates, b.Tenant, id.Index(idx), int(count), texts, by)
			found += n
			return err
		})
		if err != nil {
			return err
		}
	}
	if found != len(by) {
		return corruptValue("missing event")
	}
	return tx.SendBatch(ctx, &updates).Close()
}

// eraseRow queues the update of a row that has events of by, and returns how many it has.
func eraseRow(codec *document.Codec, updates *pgx.Batch, t id.Tenant, first id.Index, count int, texts []byte,
	by map[id.Index]id.Index) (found int, err error) {
	for i := range id.Index(max(count, 1)) {
		if by[first+i] != 0 {
			found++
		}
	}
	if found == 0 {
		return 0, nil
	}
	sql, what := eraseSegmentSQL, "segment"
	var stored []byte
	var ok bool
	if count == 0 {
		sql, what = eraseEventSQL, "documents"
		stored, ok = codec.EraseDocument(texts, by[first])
	} else {
		stored, ok = codec.EraseMembers(texts, count, func(i int) id.Index { return by[first+id.Index(i)] })
	}
	if !ok {
		return 0, fmt.Errorf("erase event %d: %w", first, corruptValue(what))
	}
	if stored != nil {
		updates.Queue(sql, int64(t), int64(first), stored)
	}
	return found, nil
}

// pageIndices yields ranges that together have all indices of by, in their order, of at most
// documentsPage indices each. Indices that lie near to each other share a range.
func pageIndices(by map[id.Index]id.Index) func(func(begin, end id.Index) bool) {
	all := make([]id.Index, 0, len(by))
	for i := range by {
		all = append(all, i)
	}
	slices.Sort(all)
	return func(yield func(begin, end id.Index) bool) {
		for n := 0; n < len(all); {
			begin, end := all[n], all[n]+1
			for n++; n < len(all) && all[n] < end+segmentEvents && all[n] < begin+documentsPage; n++ {
				end = all[n] + 1
			}
			if !yield(begin, end) {
				return
			}
		}
	}
}
