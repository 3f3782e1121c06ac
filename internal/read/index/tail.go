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

// tail is the rows of the events after the position of an index. Rows never change: after an erasure, the tail is read
// again.
type tail struct {
	begin id.Index
	rows  []Row
}

func (t tail) end() id.Index { return t.begin + id.Index(len(t.rows)) }

// rowWeight is the approximate size of a row in bytes. Names that many rows contain are in memory once.
const rowWeight = 320

func weighTail(_ id.Tenant, t tail) int64 { return 64 + int64(cap(t.rows))*rowWeight }

// readTail returns the rows [begin, s.Size()), and reads the ones that are not cached.
func (x *Index) readTail(ctx context.Context, s *log.State, begin id.Index) (tail, error) {
	t := s.Identity().Tenant
	if cached, ok := x.tails.Get(t); ok && cached.begin <= begin && cached.end() >= s.Size() {
		return cached.slice(begin, s.Size()), nil
	}
	release, err := x.extending.Lock(ctx, t)
	if err != nil {
		return tail{}, err
	}
	defer release()
	cached, ok := x.tails.Get(t)
	if !ok || cached.begin > begin || cached.end() < begin {
		cached = tail{begin: begin}
	}
	if cached.end() < s.Size() {
		if begin > cached.begin { // release the rows before begin
			cached = tail{begin, slices.Clone(cached.rows[begin-cached.begin:])}
		}
		known := len(cached.rows)
		if cached, err = x.extendTail(ctx, s, cached); err != nil {
			return tail{}, err
		}
		erases := func(r Row) bool { return r.Kind == event.KindErasure } // cached rows still contain the texts
		if known > 0 && slices.ContainsFunc(cached.rows[known:], erases) {
			if cached, err = x.extendTail(ctx, s, tail{begin: cached.begin}); err != nil {
				return tail{}, err
			}
		}
		x.tails.Put(t, cached)
	}
	return cached.slice(begin, s.Size()), nil
}

// slice returns the rows [begin, end), which t contains.
func (t tail) slice(begin, end id.Index) tail {
	return tail{begin, t.rows[begin-t.begin : end-t.begin]}
}

// extendTail appends the rows up to the latest event.
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
