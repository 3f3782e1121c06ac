package schedule

import (
	"cmp"
	"context"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

const (
	// gapLife is the time in milliseconds after which gaps are forgotten. An entry that another process filed in a gap is
	// found within this time.
	gapLife id.Instant = 10_000
	// sharedGapLife is gapLife if processes share the store: they file entries of organizations that may move here.
	sharedGapLife id.Instant = 1_000
	// maxGaps bounds the gaps. Forgotten gaps are learned again.
	maxGaps = 256
)

// gap is a range of keys [begin, end) in which the last scan found nothing. Scans skip it, because an engine reads the
// tombstone of each deleted entry: for a queue with 100,000 finished entries before the first pending one, that would be
// most of the work.
type gap struct{ begin, end string }

// gaps contains the known gaps of an Index. Only the running Sweep uses it.
type gaps struct {
	sorted []gap      // in ascending order, not adjacent
	filed  string     // all waiting entries before this key are filed; "" if unknown
	since  id.Instant // when all gaps were last forgotten
}

// settledAfter is the time in milliseconds within which an entry with a past time may still be written.
const settledAfter id.Instant = 5_000

// noteFiled records that all waiting entries before a key are filed. Entries whose time is less than settledAfter ago may
// still be written.
func (g *gaps) noteFiled(before string, now id.Instant) {
	if now > settledAfter {
		g.filed = min(before, Entry{At: now - settledAfter}.Key())
	}
}

// forgetOld forgets all gaps if the oldest may be too old.
func (g *gaps) forgetOld(now id.Instant, shared bool) {
	life := gapLife
	if shared {
		life = sharedGapLife
	}
	if now < g.since || now-g.since >= life {
		g.sorted, g.filed, g.since = nil, "", now
	}
}

// findRange returns the first part of [begin, end) that is in no gap. If there is none, from is end.
func (g *gaps) findRange(begin, end string) (from, to string) {
	for _, known := range g.sorted {
		if begin < known.begin {
			return min(begin, end), min(end, known.begin)
		}
		begin = max(begin, known.end)
	}
	return min(begin, end), end
}

// learn adds a gap.
func (g *gaps) learn(found gap) {
	if found.begin >= found.end {
		return
	}
	if len(g.sorted) >= maxGaps {
		g.sorted = nil
	}
	at, _ := slices.BinarySearchFunc(g.sorted, found, func(a, b gap) int {
		return cmp.Compare(a.begin, b.begin)
	})
	g.sorted = slices.Insert(g.sorted, at, found)
	at = max(at, 1)
	for at < len(g.sorted) && g.sorted[at].begin <= g.sorted[at-1].end {
		g.sorted[at-1].end = max(g.sorted[at-1].end, g.sorted[at].end)
		g.sorted = slices.Delete(g.sorted, at, at+1)
	}
	if at+1 < len(g.sorted) && g.sorted[at+1].begin <= g.sorted[at].end {
		g.sorted[at].end = max(g.sorted[at].end, g.sorted[at+1].end)
		g.sorted = slices.Delete(g.sorted, at+1, at+2)
	}
}

// notePlaced ends each gap before the entries that were filed in it, or that may have been.
func (g *gaps) notePlaced(changes []storage.Change) {
	for _, c := range changes {
		for i := range g.sorted {
			if known := &g.sorted[i]; c.Value != nil && known.begin <= c.Key && c.Key < known.end {
				known.end = c.Key
			}
		}
	}
}

// scanPlaces reads the first filed entries with keys in [begin, end), but at most limit. The remaining ones are in
// [next, end).
func (x *Index) scanPlaces(ctx context.Context, begin, end string, limit int) (
	found []storage.Record, next string, err error,
) {
	from, to := x.gaps.findRange(begin, end)
	if from >= to {
		return nil, end, nil
	}
	if found, err = x.Records.Scan(ctx, id.Service, x.Kind, from, to, limit); err != nil {
		return nil, "", wrapReadError(err)
	}
	first, next := to, to
	if len(found) > 0 {
		first = found[0].Key
	}
	if len(found) == limit {
		next = found[limit-1].Key + "\x00"
	}
	x.gaps.learn(gap{from, first})
	return found, next, nil
}
