package schedule

import (
	"cmp"
	"context"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

const (
	// gapLife is how long gaps are believed in, in milliseconds. An entry that another process filed
	// in a gap waits that long at most.
	gapLife id.Instant = 10_000
	// sharedGapLife is the same where other processes have a part of the work, and file entries of organizations
	// that may come here.
	sharedGapLife id.Instant = 1_000
	// maxGaps bounds the gaps; a forgotten one is learned again.
	maxGaps = 256
)

// gap is the places [begin, end), in which the last scan found nothing. Scans do not enter it, because
// an engine steps over the mark of each deleted entry there: of a queue with 100,000 finished entries
// before the first one, that would be most of the work.
type gap struct{ begin, end string }

// gaps are in ascending order, and do not touch each other. Only a Sweep uses them, one at a time.
type gaps struct {
	sorted []gap
	filed  string     // waiting entries before this key are filed; "": that is not known
	since  id.Instant // when all were forgotten for the last time
}

// settledAfter is for how long waiting entries may still be noted with a time that is over, in
// milliseconds.
const settledAfter id.Instant = 5_000

// noteFiled tells that all waiting entries before a key were filed at a time. Later than settledAfter
// before that time others may come.
func (g *gaps) noteFiled(before string, now id.Instant) {
	if now > settledAfter {
		g.filed = min(before, Entry{At: now - settledAfter}.Key())
	}
}

// forgetOld forgets all gaps when the oldest may be too old.
func (g *gaps) forgetOld(now id.Instant, shared bool) {
	life := gapLife
	if shared {
		life = sharedGapLife
	}
	if now < g.since || now-g.since >= life {
		g.sorted, g.filed, g.since = nil, "", now
	}
}

// findRange returns the first part of [begin, end) that is in no gap; from is end when there is none.
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

// notePlaced ends each gap before the entries that were placed in it, or that may have been.
func (g *gaps) notePlaced(changes []storage.Change) {
	for _, c := range changes {
		for i := range g.sorted {
			if known := &g.sorted[i]; c.Value != nil && known.begin <= c.Key && c.Key < known.end {
				known.end = c.Key
			}
		}
	}
}

// scanPlaces reads the first entries with places in [begin, end), at most limit. Those that it did not
// read lie in [next, end).
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
