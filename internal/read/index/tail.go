package index

import (
	"context"
	"fmt"
	"maps"
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

	acts      map[uint64]*changedActs // by chunk: the acts of the rows, and earlier ones that they changed
	approvals map[string]*approvalOf  // with a transition in the tail
}

func (t tail) end() id.Index { return t.begin + id.Index(len(t.rows)) }

// rowWeight is the approximate size of a row in bytes. Names that many rows contain are in memory once.
const rowWeight = 400

// actWeight is the approximate size of an act in bytes.
const actWeight = 112

func weighTail(_ id.Tenant, t tail) int64 {
	weight := 64 + int64(cap(t.rows))*rowWeight
	for _, c := range t.acts {
		weight += int64(cap(c.acts)) * actWeight
	}
	return weight
}

// readTail returns the rows from the position of a view to the latest event, and reads the ones that are not cached.
func (x *Index) readTail(ctx context.Context, s *log.State, v *view) (tail, error) {
	t, begin := s.Identity().Tenant, v.position
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
	if begin > cached.begin {
		cached = cached.without(begin)
	}
	for cached.end() < s.Size() { // each step is kept, so that a reader whose time ends makes progress
		known := len(cached.rows)
		if cached, err = x.extendTail(ctx, s, v, cached, min(s.Size(), cached.end()+tailStep)); err != nil {
			return tail{}, err
		}
		erases := func(r Row) bool { return r.Kind == event.KindErasure } // rows before it still contain the texts
		if known > 0 && slices.ContainsFunc(cached.rows[known:], erases) {
			if cached.rows, _, err = x.readTailRows(ctx, s, cached.begin, cached.end()); err != nil {
				return tail{}, err
			}
		}
		x.tails.Put(t, cached)
	}
	return cached.slice(begin, s.Size()), nil
}

// slice returns the rows [begin, end), which t contains.
func (t tail) slice(begin, end id.Index) tail {
	return tail{begin, t.rows[begin-t.begin : end-t.begin], t.acts, t.approvals}
}

// findAct returns the act at an index of the tail.
func (t tail) findAct(at id.Index) (*act, bool) {
	c := t.acts[uint64(at)/chunkEvents]
	if c == nil {
		return nil, false
	}
	i, found := c.search(at)
	if !found {
		return nil, false
	}
	return &c.acts[i], true
}

// without returns a copy of t without the rows before begin, and without what only these changed.
func (t tail) without(begin id.Index) tail {
	left := tail{begin, slices.Clone(t.rows[begin-t.begin:]), maps.Clone(t.acts), maps.Clone(t.approvals)}
	maps.DeleteFunc(left.acts, func(_ uint64, c *changedActs) bool { return c.end <= begin })
	maps.DeleteFunc(left.approvals, func(_ string, a *approvalOf) bool { return a.end <= begin })
	return left
}

// tailStep is the number of events by which a tail is extended at a time.
const tailStep = 2048

// extendTail appends the rows before end.
func (x *Index) extendTail(ctx context.Context, s *log.State, v *view, t tail, end id.Index) (tail, error) {
	rows, parts, err := x.readTailRows(ctx, s, t.end(), end)
	if err != nil {
		return t, err
	}
	before := &view{tenant: v.tenant, generation: v.generation, position: v.position, tail: t, end: v.position}
	j := x.newJoiner(s, before)
	if err := j.join(ctx, rows, parts); err != nil {
		return t, err
	}
	t.rows = append(t.rows, rows...)
	t.acts, t.approvals = withAll(t.acts, j.changed), withAll(t.approvals, j.approvals)
	return t, nil
}

// readTailRows reads the rows [begin, end), and what these events say about acts.
func (x *Index) readTailRows(ctx context.Context, s *log.State, begin, end id.Index) (rows []Row, parts []part, err error) {
	for e, err := range x.ledgers.Events(ctx, s, begin, end, allParts|storage.FieldLent) {
		if err != nil {
			return nil, nil, fmt.Errorf("read newest events: %w", err)
		}
		row, p, err := newRowAndPart(&e)
		if err != nil {
			return nil, nil, err
		}
		row.internTexts()
		rows, parts = append(rows, row), append(parts, p)
	}
	return rows, parts, nil
}

// withAll returns a copy of a map with the entries of another one.
func withAll[K comparable, V any](m, added map[K]V) map[K]V {
	all := make(map[K]V, len(m)+len(added))
	maps.Copy(all, m)
	maps.Copy(all, added)
	return all
}
