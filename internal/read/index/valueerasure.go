package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// The bounds of the work of one write that removes values. A statement of an erasure has at most event.MaxErasedRanges ranges, so there may be
// nearly twice as many as maxErasedRanges.
const (
	maxErasedRecords = 32
	maxErasedRanges  = event.MaxErasedRanges
)

// eraseValues removes the values of erased events from the records, and reports whether there was an erasure. The records that are written
// later do not contain them, because their events are read after the erasure.
func (x *Index) eraseValues(ctx context.Context, s *log.State, p *progress) (changes []storage.Change, found bool, err error) {
	var ranges []id.Range
	end := s.Size()
	if p.Erasing != nil { // later erasures begin with the first chunk again
		end = min(end, p.Erasing.End)
	}
	for e, err := range x.erasures(ctx, s, p) {
		if err != nil {
			return nil, false, err
		}
		if e.Index >= end {
			break
		}
		if ranges = append(ranges, readErasure(e.Envelope).erased...); len(ranges) >= maxErasedRanges {
			end = e.Index + 1
			break
		}
	}
	if len(ranges) > 0 {
		x.tails.Delete(s.Identity().Tenant)
		ranges = joinRanges(ranges)
		searched := 0
		for _, g := range []*generation{&p.Current, p.Next} {
			if g == nil || p.Erasing != nil && g.Number < p.Erasing.Number {
				continue
			}
			from := uint64(0)
			if p.Erasing != nil && g.Number == p.Erasing.Number {
				from = p.Erasing.Chunk
			}
			next, done, err := uint64(0), false, error(nil)
			if changes, next, done, err = x.eraseValuesIn(ctx, s.Identity().Tenant, g, ranges, from, changes, &searched); err != nil {
				return nil, false, err
			}
			if !done {
				p.Erasing = &erasing{Number: g.Number, Chunk: next, End: end}
				return changes, true, nil
			}
		}
	}
	p.Erased, p.Erasing = end, nil
	return changes, len(ranges) > 0, nil
}

// joinRanges returns the same events as ascending ranges that do not overlap. It may change its argument.
func joinRanges(ranges []id.Range) []id.Range {
	slices.SortFunc(ranges, func(a, b id.Range) int { return cmp.Compare(a.Begin, b.Begin) })
	joined := ranges[:0]
	for _, r := range ranges {
		if n := len(joined); n > 0 && r.Begin <= joined[n-1].End {
			joined[n-1].End = max(joined[n-1].End, r.End)
			continue
		}
		joined = append(joined, r)
	}
	return joined
}

// erasures yields the statements of erasures whose events may have values in records.
func (x *Index) erasures(ctx context.Context, s *log.State, p *progress) func(func(storage.Event, error) bool) {
	return func(yield func(storage.Event, error) bool) {
		if !p.hasValues() {
			return
		}
		for e, err := range x.ledgers.Events(ctx, s, min(p.Erased, s.Size()), s.Size(), storage.FieldColumns) {
			if err == nil && (e.ActionKind != event.KindErasure || !event.ReservedAgent(string(e.Agent))) {
				continue
			}
			if err == nil {
				e, err = x.ledgers.Event(ctx, s, e.Index, allParts)
			}
			if err != nil {
				err = fmt.Errorf("read erasure: %w", err)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// eraseValuesIn appends the changes that remove the values of erased events from the records of a generation, from a chunk on. It searches at
// most maxErasedRecords records in all, and returns the chunk with which it continues, and whether it is done. The ranges ascend and do not
// overlap. A record that can't be read is deleted: its values are gone too, and the index is rebuilt.
func (x *Index) eraseValuesIn(ctx context.Context, t id.Tenant, g *generation, ranges []id.Range, from uint64, changes []storage.Change,
	searched *int) (all []storage.Change, next uint64, done bool, err error) {
	erased := func(at id.Index) bool {
		i, _ := slices.BinarySearchFunc(ranges, at, func(r id.Range, at id.Index) int { return cmp.Compare(r.End, at+1) })
		return i < len(ranges) && ranges[i].Begin <= at
	}
	next = from
	for _, r := range ranges {
		for chunk := max(next, uint64(r.Begin)/chunkEvents); chunk*chunkEvents < uint64(min(r.End, g.Position)); chunk++ {
			if *searched == maxErasedRecords {
				return changes, chunk, false, nil
			}
			*searched++
			next = chunk + 1
			key := columnsKey(g.Number, chunk)
			record, err := x.readRecord(ctx, t, kindValues, key)
			if err != nil && !errors.Is(err, storage.ErrCorrupt) {
				return nil, 0, false, fmt.Errorf("read values: %w", err)
			}
			var found values
			if err == nil {
				found, err = decodeValues(record, id.Index(chunk*chunkEvents))
			}
			if err == nil && found.remove(erased) == 0 {
				continue
			}
			change := storage.Change{Kind: kindValues, Key: key, If: storage.AnyVersion}
			if err != nil {
				g.Lost = true
			} else {
				change.Value = found.encode(id.Index(chunk * chunkEvents))
			}
			changes = append(changes, change)
		}
	}
	return changes, next, true, nil
}

// ErasuresWaiting reports whether records may contain values of events that were erased before the call. It has the follower remove them.
func (x *Index) ErasuresWaiting(ctx context.Context, t id.Tenant) (bool, error) {
	s, err := x.ledgers.State(ctx, t)
	if err != nil {
		return false, err
	}
	p, err := x.readProgress(ctx, t)
	if err != nil {
		return false, unreadable(err)
	}
	x.tails.Delete(t) // they may contain the values too
	waiting := false
	for _, err := range x.erasures(ctx, s, &p) {
		if err != nil {
			return false, unreadable(err)
		}
		waiting = true
		break
	}
	if !waiting && p.Dropping {
		left, err := x.store.Scan(ctx, t, kindValues, "", generationPrefix(p.Current.Number), 1)
		if err != nil {
			return false, unreadable(err)
		}
		waiting = len(left) > 0
	}
	if waiting {
		x.follower.WakeNow(t, "")
	}
	return waiting, nil
}
