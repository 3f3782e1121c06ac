package index

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/column"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// view is one generation of a ledger's index with its tail, as one call reads it.
type view struct {
	tenant     id.Tenant
	generation generation
	position   id.Index // events below it are read by postings
	named      []Column // of the organization
	columns    []Column // named, as far as the view has them
	tail       tail     // from position; empty if it would be too long
	end        id.Index // of the events that the view contains
}

// openView returns the latest view of a ledger. If its tail can't be read, it returns the view and an error.
func (x *Index) openView(ctx context.Context, s *log.State) (*view, error) {
	t := s.Identity().Tenant
	p, err := x.readProgress(ctx, t)
	if err != nil {
		return nil, err
	}
	v := &view{tenant: t, generation: p.Current, position: min(p.Current.Position, s.Size())}
	if v.named, err = x.namedColumns(ctx, s); err != nil {
		return v, err
	}
	v.columns = p.Current.columnsOf(v.named)
	if v.end = v.position; s.Size()-v.position > maxTail {
		return v, nil
	}
	if v.tail, err = x.readTail(ctx, s, v); err != nil {
		return v, err
	}
	v.end = v.tail.end()
	return v, nil
}

// maxViews bounds how often a call is repeated because the generation was replaced in the meantime.
const maxViews = 3

// inView calls read with a view of a ledger. It calls read again if the generation was replaced in the meantime,
// because records of the old one may have been deleted.
func (x *Index) inView(ctx context.Context, t id.Tenant, read func(*log.State, *view) error) error {
	for range maxViews {
		s, err := x.ledgers.State(ctx, t)
		if err != nil {
			return err
		}
		v, failed := x.openView(ctx, s)
		if v == nil {
			return failed
		}
		if failed == nil {
			failed = read(s, v)
		}
		if errors.Is(failed, errDamaged) {
			_ = x.rebuildGeneration(ctx, t, v.generation.Number) // an error means that it is already being rebuilt
		}
		p, err := x.readProgress(ctx, t)
		if err != nil {
			return err
		}
		if p.Current.Number == v.generation.Number {
			return unreadable(failed)
		}
	}
	return &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: "The index is being rebuilt"}
}

// errDamaged means that a record of the index is damaged.
var errDamaged = errors.New("the index is damaged")

// damaged marks an error of a record of the index.
func damaged(err error) error {
	if errors.Is(err, storage.ErrCorrupt) {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return err
}

// unreadable adds a message for clients to errors of the engine.
func unreadable(err error) error {
	if err == nil || fault.Of(err).Kind != fault.Internal {
		return err
	}
	return records.Unreadable("The index can't be read", "read index", err)
}

// candidate is an event that may match.
type candidate struct {
	at    id.Index
	row   *Row // nil until it is read
	act   *Act // of an act, if the call looks for acts
	place int  // among the candidates that are read together

	passed bool // not an event: all acts of one record before or after at were compared
}

// wanted describes the events that a call looks for: the matching ones, which have all terms.
type wanted struct {
	terms   []term
	matches func(*Row) bool
	acts    func(*act) bool    // if it is not nil, the events are acts that match
	columns []column.Condition // that the values of these acts satisfy
}

// rows yields the matching rows of spans. It reads one event first, and then an increasing number at once.
func (x *Index) rows(ctx context.Context, s *log.State, v *view, w wanted, spans []span,
	ascending bool) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		var waiting []candidate
		width := 1
		flush := func() bool {
			rows, err := x.readRows(ctx, s, waiting)
			if err != nil {
				yield(Row{}, err)
				return false
			}
			for i := range rows {
				if w.matches(&rows[i]) && !yield(rows[i], nil) {
					return false
				}
			}
			waiting, width = waiting[:0], min(width*8, readAhead)
			return true
		}
		for c, err := range x.candidates(ctx, v, w, spans, ascending) {
			if err != nil {
				yield(Row{}, err)
				return
			}
			if waiting = append(waiting, c); len(waiting) == width && !flush() {
				return
			}
		}
		flush()
	}
}

// readRows returns the rows of candidates.
func (x *Index) readRows(ctx context.Context, s *log.State, of []candidate) ([]Row, error) {
	rows := make([]Row, len(of))
	var unread []candidate
	for i, c := range of {
		if c.row != nil {
			rows[i] = *c.row
			rows[i].Act = c.act
			continue
		}
		unread = append(unread, candidate{at: c.at, place: i})
	}
	err := x.readEvents(ctx, s, unread, func(place int, e *storage.Event) (err error) {
		rows[place], err = newRow(e)
		rows[place].Act = of[place].act
		return err
	})
	return rows, err
}

// candidates yields the events of spans that may match. All matching events are among them.
func (x *Index) candidates(ctx context.Context, v *view, w wanted, spans []span,
	ascending bool) iter.Seq2[candidate, error] {
	return func(yield func(candidate, error) bool) {
		ordered := slices.Clone(spans)
		if !ascending {
			slices.Reverse(ordered)
		}
		for _, s := range ordered {
			clipped := s.clip(span{v.position, v.end})
			indexed := s.clip(span{0, v.position})
			if !ascending && !v.yieldTail(w, clipped, ascending, yield) {
				return
			}
			if indexed.begin < indexed.end && !x.yieldIndexed(ctx, v, w, indexed, ascending, yield) {
				return
			}
			if ascending && !v.yieldTail(w, clipped, ascending, yield) {
				return
			}
		}
	}
}

// yieldTail yields the rows of the tail that match.
func (v *view) yieldTail(w wanted, s span, ascending bool, yield func(candidate, error) bool) bool {
	for n := s.begin; n < s.end; n++ {
		at := n
		if !ascending {
			at = s.end - 1 - (n - s.begin)
		}
		r := &v.tail.rows[at-v.tail.begin]
		if !w.matches(r) {
			continue
		}
		c := candidate{at: at, row: r}
		if w.acts != nil {
			a, found := v.tail.findAct(at)
			if !found || !w.acts(a) || !v.satisfies(at, w.columns) {
				continue
			}
			c.act = a.describe()
		}
		if !yield(c, nil) {
			return false
		}
	}
	return true
}

// yieldIndexed yields the events of a span below the position. It reads the postings of one block first, and then of an
// increasing number at once.
func (x *Index) yieldIndexed(ctx context.Context, v *view, w wanted, s span, ascending bool,
	yield func(candidate, error) bool) bool {
	terms := w.terms
	first, end := uint64(s.begin)/blockEvents, uint64(s.end-1)/blockEvents+1
	dense := make([]bool, len(terms))
	for width := uint64(1); first < end; width = min(width*16, widestWindow(terms)) {
		window := [2]uint64{first, min(first+width, end)}
		if ascending {
			first = window[1]
		} else {
			window = [2]uint64{max(first, end-min(width, end)), end}
			end = window[0]
		}
		sets, err := x.readWindow(ctx, v, terms, dense, window)
		if err != nil {
			yield(candidate{}, err)
			return false
		}
		for n := range sets {
			block := window[0] + uint64(n)
			if !ascending {
				n = len(sets) - 1 - n
				block = window[0] + uint64(n)
			}
			if sets[n] == nil && len(terms) > 0 {
				continue
			}
			base := id.Index(block * blockEvents)
			within := s.clip(span{base, base + blockEvents})
			if w.acts != nil && !x.yieldActs(ctx, v, w, sets[n], within, ascending, yield) ||
				w.acts == nil && !yieldBlock(sets[n], base, within, ascending, yield) {
				return false
			}
		}
	}
	return true
}

// The maximum number of blocks per read. A trace or a hash is in few blocks, and most blocks are merged.
const (
	maxWindow        = 128
	maxWindowSingles = 4096
)

func widestWindow(terms []term) uint64 {
	if len(terms) == 0 || slices.ContainsFunc(terms, func(t term) bool { return !t.single }) {
		return maxWindow
	}
	return maxWindowSingles
}

// yieldBlock yields the events of a span of a block. Unless found is nil, they are at these places.
func yieldBlock(found *placeSet, base id.Index, within span, ascending bool, yield func(candidate, error) bool) bool {
	if within.begin >= within.end {
		return true
	}
	var clip placeSet
	clip.AddRange(int(within.begin-base), int(within.end-base))
	if found != nil {
		clip.Intersect(found)
	}
	for place := range clip.Places(ascending) {
		if !yield(candidate{at: base + id.Index(place)}, nil) {
			return false
		}
	}
	return true
}

// yieldActs yields the acts of a span of a block that match. Unless places is nil, they are at these places.
func (x *Index) yieldActs(ctx context.Context, v *view, w wanted, places *placeSet, within span, ascending bool,
	yield func(candidate, error) bool) bool {
	for within.begin < within.end {
		var part span
		if ascending {
			part = span{within.begin, min(within.end, within.begin-within.begin%chunkEvents+chunkEvents)}
			within.begin = part.end
		} else {
			part = span{max(within.begin, (within.end-1)-(within.end-1)%chunkEvents), within.end}
			within.end = part.begin
		}
		found, err := x.findActs(ctx, v, part, places, w)
		if err != nil {
			yield(candidate{}, err)
			return false
		}
		if !ascending {
			slices.Reverse(found)
		}
		for i := range found {
			if !yield(candidate{at: found[i].at, act: found[i].describe()}, nil) {
				return false
			}
		}
		edge := part.begin
		if ascending {
			edge = part.end - 1
		}
		if !yield(candidate{at: edge, passed: true}, nil) {
			return false
		}
	}
	return true
}

// denseBlock is the number of events of a block that make a term dense. Its postings are bitmaps, and are read only if
// the other terms leave something.
const denseBlock = blockEvents / 16

// readWindow returns the places that have all terms, for each block of a window, or nil for a block without any. It
// reads the terms that were dense in the window before last, and records which ones are dense now.
func (x *Index) readWindow(ctx context.Context, v *view, terms []term, dense []bool,
	window [2]uint64) ([]*placeSet, error) {
	sets := make([]*placeSet, window[1]-window[0])
	known, were := false, slices.Clone(dense)
	for _, pass := range []bool{false, true} {
		of := make([][]*placeSet, len(terms))
		g, within := errgroup.WithContext(ctx)
		for i, t := range terms {
			if were[i] == pass {
				g.Go(func() (err error) {
					of[i], err = x.readTerm(within, v, t, window)
					return damaged(err)
				})
			}
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
		for i := range of {
			if of[i] == nil {
				continue
			}
			if dense[i] = isDense(of[i]); !known {
				sets, known = of[i], true
			} else {
				intersectEach(sets, of[i])
			}
		}
		if known && !slices.ContainsFunc(sets, func(s *placeSet) bool { return s != nil }) {
			return sets, nil
		}
	}
	return sets, nil
}

func isDense(sets []*placeSet) bool {
	return slices.ContainsFunc(sets, func(s *placeSet) bool { return s != nil && s.Count() >= denseBlock })
}

// readTerm returns the places of a term in the blocks of a window. The latest postings are read first: if their block
// was completed since the view was opened, they are found with the complete blocks.
func (x *Index) readTerm(ctx context.Context, v *view, t term, window [2]uint64) ([]*placeSet, error) {
	sets := make([]*placeSet, window[1]-window[0])
	add := func(block uint64, entries []byte) error {
		e, known, err := findEntry(entries, t.fingerprint)
		if err != nil || !known {
			return err
		}
		if sets[block-window[0]] == nil {
			sets[block-window[0]] = new(placeSet)
		}
		return e.AddTo(sets[block-window[0]])
	}
	if newest := uint64(v.position) / blockEvents; v.position%blockEvents != 0 && newest < window[1] {
		seen := generation{Number: v.generation.Number, Position: v.position}
		found, err := x.scanRecent(ctx, v.tenant, seen, uint16(t.group()))
		if err != nil {
			return nil, err
		}
		for i := range found {
			entries, err := findSection(found[i].Value, t.section())
			if err == nil {
				err = add(newest, entries)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	// A block is first searched at its position before it was merged, so that it is found in one of the two positions.
	found, err := x.store.Scan(ctx, v.tenant, t.kind(), recordKey(v.generation.Number, t.bucket, window[0]),
		recordKey(v.generation.Number, t.bucket, window[1]), len(sets))
	if err != nil {
		return nil, fmt.Errorf("read postings: %w", err)
	}
	for i := range found {
		block, err := partOf(found[i].Key)
		if err == nil && (block < window[0] || block >= window[1]) {
			err = errKey()
		}
		if err == nil {
			err = add(block, found[i].Value)
		}
		if err != nil {
			return nil, err
		}
	}
	if t.single {
		err = x.merger.Visit(ctx, v.tenant, mergeTerm{Generation: v.generation.Number, Bucket: t.bucket,
			Fingerprint: t.fingerprint, Blocks: uint64(v.position) / blockEvents}, window, add)
	}
	return sets, err
}
