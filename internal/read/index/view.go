package index

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// view is one generation of a ledger's index with its tail, as a call sees it.
type view struct {
	tenant     id.Tenant
	generation generation
	position   id.Index // postings count below it
	tail       tail     // from position on; empty when it would be too long
	end        id.Index // of the events that the view shows
}

// openView returns the newest view of a ledger.
func (x *Index) openView(ctx context.Context, s *log.State) (*view, error) {
	t := s.Identity().Tenant
	p, err := x.readProgress(ctx, t)
	if err != nil {
		return nil, err
	}
	v := &view{tenant: t, generation: p.Value.Current, position: min(p.Value.Current.Position, s.Size())}
	if v.end = v.position; s.Size()-v.position > maxTail {
		return v, nil
	}
	if v.tail, err = x.readTail(ctx, s, v.position); err != nil {
		return nil, err
	}
	v.end = v.tail.end()
	return v, nil
}

// maxViews is how often a call is made again because the generation was replaced meanwhile.
const maxViews = 3

// inView calls read with a view of a ledger. It calls read again when the generation was replaced
// meanwhile, because records of the old one may have been deleted.
func (x *Index) inView(ctx context.Context, t id.Tenant, read func(*log.State, *view) error) error {
	for range maxViews {
		s, err := x.ledgers.State(ctx, t)
		if err != nil {
			return err
		}
		v, err := x.openView(ctx, s)
		if err != nil {
			return err
		}
		failed := read(s, v)
		p, err := x.readProgress(ctx, t)
		if err != nil {
			return err
		}
		if p.Value.Current.Number == v.generation.Number {
			return unreadable(failed)
		}
	}
	return &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: "The index is being made anew"}
}

// unreadable gives errors of the engine a message for clients.
func unreadable(err error) error {
	if err == nil || fault.Of(err).Kind != fault.Internal {
		return err
	}
	return records.Unreadable("The index can't be read", "read index", err)
}

// candidate is an event that may be wanted.
type candidate struct {
	at  id.Index
	row *Row // nil: to be read
}

// wanted says which events a call looks for: those that match, which have all terms.
type wanted struct {
	terms   []term
	matches func(*Row) bool
}

// rows yields the rows of spans that are wanted.
func (x *Index) rows(ctx context.Context, s *log.State, v *view, w wanted, spans []span,
	ascending bool) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for c, err := range x.candidates(ctx, v, w, spans, ascending) {
			var row Row
			if err == nil {
				row, err = x.rowOf(ctx, s, c)
			}
			if err != nil {
				yield(row, err)
				return
			}
			if w.matches(&row) && !yield(row, nil) {
				return
			}
		}
	}
}

// candidates yields the events of spans that may be wanted. All events that are wanted are among them.
func (x *Index) candidates(ctx context.Context, v *view, w wanted, spans []span,
	ascending bool) iter.Seq2[candidate, error] {
	return func(yield func(candidate, error) bool) {
		ordered := slices.Clone(spans)
		if !ascending {
			slices.Reverse(ordered)
		}
		for _, s := range ordered {
			begun := s.clip(span{v.position, v.end})
			indexed := s.clip(span{0, v.position})
			if !ascending && !v.yieldTail(w, begun, ascending, yield) {
				return
			}
			if indexed.begin < indexed.end && !x.yieldIndexed(ctx, v, w.terms, indexed, ascending, yield) {
				return
			}
			if ascending && !v.yieldTail(w, begun, ascending, yield) {
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
		if r := &v.tail.rows[at-v.tail.begin]; w.matches(r) && !yield(candidate{at, r}, nil) {
			return false
		}
	}
	return true
}

// yieldIndexed yields the events of a span below the position. It reads the postings of one block
// first, and then of more and more at once.
func (x *Index) yieldIndexed(ctx context.Context, v *view, terms []term, s span, ascending bool,
	yield func(candidate, error) bool) bool {
	first, end := uint64(s.begin)/blockEvents, uint64(s.end-1)/blockEvents+1
	for width := uint64(1); first < end; width = min(width*4, maxWindow) {
		window := [2]uint64{first, min(first+width, end)}
		if ascending {
			first = window[1]
		} else {
			window = [2]uint64{max(first, end-min(width, end)), end}
			end = window[0]
		}
		sets, err := x.readWindow(ctx, v, terms, window)
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
			if !yieldBlock(sets[n], block, s, len(terms) == 0, ascending, yield) {
				return false
			}
		}
	}
	return true
}

// maxWindow is how many blocks are read at once at most.
const maxWindow = 64

// yieldBlock yields the events of a block that are in a set, or all for no terms, and in a span.
func yieldBlock(found *set, block uint64, s span, all, ascending bool, yield func(candidate, error) bool) bool {
	if found == nil && !all {
		return true
	}
	base := id.Index(block * blockEvents)
	within := s.clip(span{base, base + blockEvents})
	if within.begin >= within.end {
		return true
	}
	var clip set
	clip.addRange(int(within.begin-base), int(within.end-base))
	if found != nil {
		clip.intersect(found)
	}
	for place := range clip.places(ascending) {
		if !yield(candidate{at: base + id.Index(place)}, nil) {
			return false
		}
	}
	return true
}

// readWindow returns the places that have all terms, for each block of a window; nil for a block
// without any.
func (x *Index) readWindow(ctx context.Context, v *view, terms []term, window [2]uint64) ([]*set, error) {
	sets := make([]*set, window[1]-window[0])
	for n, t := range terms {
		found, err := x.store.Scan(ctx, v.tenant, kindPostings, postingsKey(v.generation.Number, t.bucket, window[0]),
			postingsKey(v.generation.Number, t.bucket, window[1]), len(sets))
		if err != nil {
			return nil, fmt.Errorf("read postings: %w", err)
		}
		if n == 0 {
			if err := fillSets(sets, found, t, window[0]); err != nil {
				return nil, err
			}
			continue
		}
		with := make([]*set, len(sets))
		if err := fillSets(with, found, t, window[0]); err != nil {
			return nil, err
		}
		if !intersectSets(sets, with) {
			break
		}
	}
	return sets, nil
}

// fillSets decodes the places of a term in the records of its bucket.
func fillSets(sets []*set, found []storage.Record, t term, first uint64) error {
	for i := range found {
		block, err := blockOf(found[i].Key)
		if err != nil || block < first || block-first >= uint64(len(sets)) {
			return errPostings("key")
		}
		e, known, err := findEntry(found[i].Value, t.fingerprint)
		if err != nil {
			return err
		}
		if known {
			sets[block-first] = new(set)
			if err := e.addTo(sets[block-first]); err != nil {
				return err
			}
		}
	}
	return nil
}

// intersectSets removes from sets all places that with does not have, and reports whether anything is left.
func intersectSets(sets, with []*set) (left bool) {
	for i := range sets {
		if sets[i] == nil || with[i] == nil || !sets[i].intersect(with[i]) {
			sets[i] = nil
			continue
		}
		left = true
	}
	return left
}

// blockOf reads the block of a key of postings.
func blockOf(key string) (block uint64, err error) {
	if len(key) < 8 {
		return 0, errPostings("key")
	}
	_, err = fmt.Sscanf(key[len(key)-8:], "%08x", &block)
	return block, err
}
