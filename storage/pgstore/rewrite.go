package pgstore

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

const (
	eventSQL   = `UPDATE event SET documents = $3 WHERE org = $1 AND idx = $2 AND entry IS NOT NULL`
	segmentSQL = `UPDATE segment SET texts = $3 WHERE org = $1 AND idx = $2`
)

// rewritePage is the number of events that are read at a time.
const rewritePage = 128

// textRewriter rewrites the stored texts of events of one organization, row by row. It changes only the column of the
// texts, and only in rows that contain a requested event. If any requested event is missing, nothing is written.
type textRewriter struct {
	// SQL selects index, count, entries and texts of the rows that contain the events of organization $1 at indices $2,
	// in this order. Count is 0 for an event in a separate row.
	SQL string
	Org int64

	// changeEvent changes the texts of an event in a separate row, and changeMembers the texts of a segment. If stored
	// is nil, the row is left unchanged. ok reports whether the texts are valid.
	changeEvent   func(texts []byte, at id.Index) (stored []byte, ok bool)
	changeMembers func(texts []byte, first id.Index, count int) (stored []byte, ok bool)

	last    int64 // last row that was read
	found   int   // requested events
	updates pgx.Batch
}

// EraseEnvelopes removes the envelopes of events. by maps their indices to the indices of the erasing events. The
// transaction must hold the lock of the head, so that no other transaction writes these rows. It returns
// storage.ErrCorrupt if an event is damaged or missing.
func (t *textRewriter) EraseEnvelopes(ctx context.Context, tx pgx.Tx, codec *documentCodec, by map[id.Index]id.Index) error {
	t.changeEvent = func(texts []byte, at id.Index) ([]byte, bool) { return codec.EraseDocument(texts, by[at]) }
	t.changeMembers = func(texts []byte, first id.Index, count int) ([]byte, bool) {
		return codec.EraseMembers(texts, count, func(n int) id.Index { return by[first+id.Index(n)] })
	}
	return t.rewrite(ctx, tx, slices.Sorted(maps.Keys(by)))
}

// Drop removes record and envelope of the events [begin, end). The conditions of EraseEnvelopes apply.
func (t *textRewriter) Drop(ctx context.Context, tx pgx.Tx, codec *documentCodec, begin, end id.Index) error {
	t.changeEvent = func(texts []byte, _ id.Index) ([]byte, bool) { return codec.DropDocument(texts) }
	t.changeMembers = func(texts []byte, first id.Index, count int) ([]byte, bool) {
		return codec.DropMembers(texts, count, func(n int) bool {
			i := first + id.Index(n)
			return begin <= i && i < end
		})
	}
	var at []id.Index
	for i := begin; i < end; i++ {
		at = append(at, i)
	}
	return t.rewrite(ctx, tx, at)
}

// rewrite changes the rows of the events at ascending indices.
func (t *textRewriter) rewrite(ctx context.Context, tx pgx.Tx, at []id.Index) error {
	t.last = -1
	for some := range slices.Chunk(at, rewritePage) {
		rows, err := tx.Query(ctx, t.SQL, t.Org, some)
		if err != nil {
			return err
		}
		var row int64
		var count int16
		var entries, texts []byte
		into := []any{&row, &count, &entries, &texts}
		_, err = pgx.ForEachRow(rows, into, func() error { return t.changeRow(row, int(count), texts, at) })
		if err != nil {
			return err
		}
	}
	if t.found != len(at) {
		return fmt.Errorf("missing event: %w", storage.ErrCorrupt)
	}
	return tx.SendBatch(ctx, &t.updates).Close()
}

// changeRow queues the update of a row if it contains requested events. Rows arrive in ascending order, and a row may
// occur again with the next chunk of indices.
func (t *textRewriter) changeRow(row int64, count int, texts []byte, at []id.Index) error {
	if row <= t.last {
		return nil
	}
	t.last = row
	first := id.Index(row)
	from, _ := slices.BinarySearch(at, first)
	to, _ := slices.BinarySearch(at, first+id.Index(max(count, 1)))
	if from == to {
		return nil
	}
	t.found += to - from
	sql := segmentSQL
	var stored []byte
	var ok bool
	if count == 0 {
		sql = eventSQL
		stored, ok = t.changeEvent(texts, first)
	} else {
		stored, ok = t.changeMembers(texts, first, count)
	}
	if !ok {
		return fmt.Errorf("texts of event %d: %w", row, storage.ErrCorrupt)
	}
	if stored != nil {
		t.updates.Queue(sql, t.Org, row, stored)
	}
	return nil
}
