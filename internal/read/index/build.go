package index

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// dueEnd returns the end of the events that the next write takes in: whole chunks of the block at
// position. Nothing is due when it is position.
func dueEnd(position, size id.Index) id.Index {
	whole := size - size%chunkEvents
	return max(position, min(whole, position-position%blockEvents+blockEvents))
}

// postingsOf are the places of the events that a write takes in, by bucket and fingerprint.
type postingsOf [buckets]map[uint32][]uint16

// value is a term before it is hashed.
type value struct {
	field field
	text  string
}

// builder takes in the events of a part of one block.
type builder struct {
	postings postingsOf
	rows     []Row
	columns  [][]byte // of full chunks
	hashed   map[value]term
}

// addRow takes in a row. The rows of a builder are of one block, in ascending order.
func (b *builder) addRow(r Row) {
	place := uint16(r.Index % blockEvents)
	r.visitTerms(func(f field, text string) {
		b.addPlace(b.termOf(f, text), place)
	})
	if b.rows = append(b.rows, r); len(b.rows) == chunkEvents {
		b.columns = append(b.columns, encodeColumns(b.rows))
		b.rows = b.rows[:0]
	}
}

func (b *builder) addPlace(t term, place uint16) {
	bucket := &b.postings[t.bucket]
	if *bucket == nil {
		*bucket = make(map[uint32][]uint16)
	}
	(*bucket)[t.fingerprint] = append((*bucket)[t.fingerprint], place)
}

// termOf remembers the terms that are met again.
func (b *builder) termOf(f field, text string) term {
	if f == byTrace || f == byHash {
		return newTerm(f, text)
	}
	t, known := b.hashed[value{f, text}]
	if !known {
		t = newTerm(f, text)
		b.hashed[value{f, text}] = t
	}
	return t
}

// buildChanges returns the changes that take the events [g.Position, end) of a ledger into a generation.
func (x *Index) buildChanges(ctx context.Context, s *log.State, g generation, end id.Index) ([]storage.Change, error) {
	b := &builder{hashed: make(map[value]term)}
	for e, err := range x.ledgers.Events(ctx, s, g.Position, end, allParts) {
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		row, err := newRow(&e)
		if err != nil {
			return nil, err
		}
		b.addRow(row)
	}
	if got, want := len(b.columns), int((end-g.Position)/chunkEvents); got != want || len(b.rows) > 0 {
		return nil, fmt.Errorf("read events: %w: %d chunks and %d events of %d chunks", storage.ErrCorrupt, got,
			len(b.rows), want)
	}
	changes := make([]storage.Change, 0, buckets+len(b.columns)+1)
	for i, record := range b.columns {
		chunk := uint64(g.Position)/chunkEvents + uint64(i)
		changes = append(changes, storage.Change{Kind: kindColumns, Key: columnsKey(g.Number, chunk), Value: record,
			If: storage.AnyVersion})
	}
	return x.appendPostings(ctx, s.Identity().Tenant, g, &b.postings, changes)
}

// appendPostings appends the changes of the buckets that got new places.
func (x *Index) appendPostings(ctx context.Context, t id.Tenant, g generation, more *postingsOf,
	changes []storage.Change) ([]storage.Change, error) {
	block := uint64(g.Position) / blockEvents
	for n := range more {
		if more[n] == nil {
			continue
		}
		key := postingsKey(g.Number, byte(n), block)
		var before []byte
		var err error
		if g.Position%blockEvents != 0 {
			if before, err = x.readRecord(ctx, t, kindPostings, key); err != nil {
				return nil, fmt.Errorf("read postings: %w", err)
			}
		}
		merged, err := mergePostings(before, more[n])
		if err != nil {
			return nil, err
		}
		changes = append(changes, storage.Change{Kind: kindPostings, Key: key, Value: merged, If: storage.AnyVersion})
	}
	return changes, nil
}

// dropAtOnce is how many records of a dropped generation are deleted by one write.
const dropAtOnce = 256

// dropRecords deletes records of the dropped generation, and reports whether that was the end.
func (x *Index) dropRecords(ctx context.Context, t id.Tenant, number uint64) (ended bool, err error) {
	var changes []storage.Change
	for _, kind := range []storage.Kind{kindPostings, kindColumns} {
		r := records.Range{Begin: generationPrefix(number), End: generationPrefix(number + 1)}
		for found, err := range records.Scan(ctx, x.store, t, kind, r, dropAtOnce) {
			if err != nil {
				return false, fmt.Errorf("read dropped index: %w", err)
			}
			changes = append(changes, storage.Change{Kind: kind, Key: found.Key, If: storage.AnyVersion})
			if len(changes) == dropAtOnce {
				return false, x.store.Write(ctx, t, changes)
			}
		}
	}
	if len(changes) == 0 {
		return true, nil
	}
	return true, x.store.Write(ctx, t, changes)
}
