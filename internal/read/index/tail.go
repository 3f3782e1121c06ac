package index

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/column"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// tail is the rows of the events after the position of an index. Rows never change: after an erasure, the tail is read
// again.
type tail struct {
	begin id.Index
	rows  []Row

	columns []Column         // of cells; their beginnings are ignored
	cells   [][]column.Value // of the rows; nil for a row that is no act, or has no value

	acts      map[uint64]*changedActs // by chunk: the acts of the rows, and earlier ones that they changed
	approvals map[string]*approvalOf  // with a transition in the tail
	steps     []stepAct               // of the rows
	keys      toolKeys                // in force after the rows, as of a joiner
}

func (t tail) end() id.Index { return t.begin + id.Index(len(t.rows)) }

// rowWeight is the approximate size of a row in bytes. Names that many rows contain are in memory once.
const rowWeight = 464

// actWeight is the approximate size of an act in bytes.
const actWeight = 144

// stepWeight is the size of the name of a step in bytes.
const stepWeight = 24

// keyWeight is the approximate size of the key of a tool in bytes.
const keyWeight = 128

// cellWeight is the size of a cell in bytes without its text.
const cellWeight = 40

func weighTail(_ id.Tenant, t tail) int64 {
	weight := 64 + int64(cap(t.rows))*rowWeight + int64(cap(t.steps))*stepWeight
	for i := range t.rows {
		weight += int64(len(t.rows[i].OnBehalfOf))
	}
	for _, c := range t.acts {
		weight += int64(cap(c.acts)) * actWeight
	}
	weight += int64(len(t.keys)) * keyWeight
	weight += int64(cap(t.cells)) * 24
	for i := range t.cells {
		weight += int64(cap(t.cells[i])) * cellWeight
		for n := range t.cells[i] {
			weight += int64(len(t.cells[i][n].Text))
		}
	}
	return weight
}

// readTail returns the rows from the position of a view to the latest event, and reads the ones that are not cached.
func (x *Index) readTail(ctx context.Context, s *log.State, v *view) (tail, error) {
	t, begin := s.Identity().Tenant, v.position
	if cached, ok := x.tails.Get(t); ok && cached.begin <= begin && cached.end() >= s.Size() && cached.has(v.columns) {
		return cached.slice(begin, s.Size()), nil
	}
	release, err := x.extending.Lock(ctx, t)
	if err != nil {
		return tail{}, err
	}
	defer release()
	cached, ok := x.tails.Get(t)
	if !ok || cached.begin > begin || cached.end() < begin || !cached.has(v.columns) {
		cached = tail{begin: begin, columns: v.columns}
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
			if cached.rows, cached.cells, _, err = x.readTailRows(ctx, s, v.columns, span{cached.begin, cached.end()}); err != nil {
				return tail{}, err
			}
		}
		x.tails.Put(t, cached)
	}
	return cached.slice(begin, s.Size()), nil
}

// slice returns the rows [begin, end), which t contains.
func (t tail) slice(begin, end id.Index) tail {
	return tail{begin, t.rows[begin-t.begin : end-t.begin], t.columns, t.cells[begin-t.begin : end-t.begin], t.acts, t.approvals, t.steps, t.keys}
}

// has reports whether the cells of t are of columns.
func (t tail) has(columns []Column) bool {
	return slices.EqualFunc(t.columns, columns, func(a, b Column) bool { return a.Path == b.Path })
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
	left := tail{begin, slices.Clone(t.rows[begin-t.begin:]), t.columns, slices.Clone(t.cells[begin-t.begin:]),
		maps.Clone(t.acts), maps.Clone(t.approvals), slices.Clone(t.steps), t.keys}
	maps.DeleteFunc(left.acts, func(_ uint64, c *changedActs) bool { return c.end <= begin })
	maps.DeleteFunc(left.approvals, func(_ string, a *approvalOf) bool { return a.end <= begin })
	left.steps = slices.DeleteFunc(left.steps, func(s stepAct) bool { return s.at < begin })
	return left
}

// tailStep is the number of events by which a tail is extended at a time.
const tailStep = 2048

// extendTail appends the rows before end.
func (x *Index) extendTail(ctx context.Context, s *log.State, v *view, t tail, end id.Index) (tail, error) {
	rows, cells, parts, err := x.readTailRows(ctx, s, t.columns, span{t.end(), end})
	if err != nil {
		return t, err
	}
	before := &view{tenant: v.tenant, generation: v.generation, position: v.position, tail: t, end: v.position}
	j := x.newJoiner(s, before)
	j.keys = t.keys
	if err := j.join(ctx, rows, parts); err != nil {
		return t, err
	}
	t.rows, t.cells = append(t.rows, rows...), append(t.cells, cells...)
	t.steps = append(t.steps, stepActs(rows, parts)...)
	t.keys = j.keys
	t.acts, t.approvals = withAll(t.acts, j.changed), withAll(t.approvals, j.approvals)
	return t, nil
}

// readTailRows reads the rows of a span with the values of columns, and what these events say about acts.
func (x *Index) readTailRows(ctx context.Context, s *log.State, columns []Column, of span) (rows []Row, cells [][]column.Value, parts []part, err error) {
	for e, err := range x.ledgers.Events(ctx, s, of.begin, of.end, allParts|storage.FieldLent) {
		if err != nil {
			return nil, nil, nil, fmt.Errorf("read newest events: %w", err)
		}
		row, p, err := newRowAndPart(&e)
		if err != nil {
			return nil, nil, nil, err
		}
		row.internTexts()
		var values []column.Value
		if p.role == roleAct {
			values = readCells(e.Envelope, columns)
		}
		rows, cells, parts = append(rows, row), append(cells, values), append(parts, p)
	}
	return rows, cells, parts, nil
}

// withAll returns a copy of a map with the entries of another one.
func withAll[K comparable, V any](m, added map[K]V) map[K]V {
	all := make(map[K]V, len(m)+len(added))
	maps.Copy(all, m)
	maps.Copy(all, added)
	return all
}
