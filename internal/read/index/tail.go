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

// rowWeight is the approximate size of a row and its act in bytes. Names that many rows contain are in memory once.
const rowWeight = 640

func weighTail(_ id.Tenant, t tail) int64 { return 64 + int64(cap(t.rows))*rowWeight }

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
	if cached.end() < s.Size() {
		if begin > cached.begin { // release the rows before begin
			cached = cached.without(begin)
		}
		known := len(cached.rows)
		if cached, err = x.extendTail(ctx, s, v, cached); err != nil {
			return tail{}, err
		}
		erases := func(r Row) bool { return r.Kind == event.KindErasure } // cached rows still contain the texts
		if known > 0 && slices.ContainsFunc(cached.rows[known:], erases) {
			if cached, err = x.extendTail(ctx, s, v, tail{begin: cached.begin}); err != nil {
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

// extendTail appends the rows up to the latest event.
func (x *Index) extendTail(ctx context.Context, s *log.State, v *view, t tail) (tail, error) {
	known := len(t.rows)
	var parts []part
	for e, err := range x.ledgers.Events(ctx, s, t.end(), s.Size(), allParts|storage.FieldLent) {
		if err != nil {
			return t, fmt.Errorf("read newest events: %w", err)
		}
		row, p, err := newRowAndPart(&e)
		if err != nil {
			return t, err
		}
		row.internTexts()
		t.rows, parts = append(t.rows, row), append(parts, p)
	}
	before := &view{tenant: v.tenant, generation: v.generation, position: v.position, tail: t, end: v.position}
	j := x.newJoiner(s, before)
	if err := j.join(ctx, t.rows[known:], parts); err != nil {
		return t, err
	}
	t.acts, t.approvals = withAll(t.acts, j.changed), withAll(t.approvals, j.approvals)
	return t, nil
}

// withAll returns a copy of a map with the entries of another one.
func withAll[K comparable, V any](m, added map[K]V) map[K]V {
	all := make(map[K]V, len(m)+len(added))
	maps.Copy(all, m)
	maps.Copy(all, added)
	return all
}
