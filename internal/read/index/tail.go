package index

import (
	"context"
	"fmt"
	"slices"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// tail is the rows of the events behind the position of an index. Rows never change: an erasure has it read anew.
type tail struct {
	begin id.Index
	rows  []Row
}

func (t tail) end() id.Index { return t.begin + id.Index(len(t.rows)) }

// rowWeight is about the size of a row, in bytes. Names that many rows have are in memory once.
const rowWeight = 320

func weighTail(_ id.Tenant, t tail) int64 { return 64 + int64(cap(t.rows))*rowWeight }

// readTail returns the rows [begin, s.Size()), from memory as far as they are there.
func (x *Index) readTail(ctx context.Context, s *log.State, begin id.Index) (tail, error) {
	t := s.Identity().Tenant
	if kept, ok := x.tails.Get(t); ok && kept.begin <= begin && kept.end() >= s.Size() {
		return kept.slice(begin, s.Size()), nil
	}
	release, err := x.extending.Lock(ctx, t)
	if err != nil {
		return tail{}, err
	}
	defer release()
	kept, ok := x.tails.Get(t)
	if !ok || kept.begin > begin || kept.end() < begin {
		kept = tail{begin: begin}
	}
	if kept.end() < s.Size() {
		if begin > kept.begin { // the rows before begin give their memory back
			kept = tail{begin, slices.Clone(kept.rows[begin-kept.begin:])}
		}
		known := len(kept.rows)
		if kept, err = x.extendTail(ctx, s, kept); err != nil {
			return tail{}, err
		}
		erases := func(r Row) bool { return r.Kind == event.KindErasure } // rows that were read before still show the texts
		if known > 0 && slices.ContainsFunc(kept.rows[known:], erases) {
			if kept, err = x.extendTail(ctx, s, tail{begin: kept.begin}); err != nil {
				return tail{}, err
			}
		}
		x.tails.Put(t, kept)
	}
	return kept.slice(begin, s.Size()), nil
}

// slice returns the rows [begin, end), which are in t.
func (t tail) slice(begin, end id.Index) tail {
	return tail{begin, t.rows[begin-t.begin : end-t.begin]}
}

// extendTail appends the rows up to the newest event.
func (x *Index) extendTail(ctx context.Context, s *log.State, t tail) (tail, error) {
	for e, err := range x.ledgers.Events(ctx, s, t.end(), s.Size(), allParts|storage.FieldLent) {
		if err != nil {
			return t, fmt.Errorf("read newest events: %w", err)
		}
		row, err := newRow(&e)
		if err != nil {
			return t, err
		}
		row.internTexts()
		t.rows = append(t.rows, row)
	}
	return t, nil
}
