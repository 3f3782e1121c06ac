package web

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
)

// The bars equal an independent count of each unit, and stay within the chart.
func TestActivityCounts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, gap := range []time.Duration{time.Second, 7 * time.Minute, 5 * time.Hour, 40 * time.Hour, 400 * time.Hour} {
		at := time.Date(2026, 11, 20, 23, 59, 0, 0, time.UTC)
		var times []id.Instant
		for i := range lookedAt {
			at = at.Add(time.Duration(r.Int64N(int64(gap))))
			if i%5 == 3 {
				times = append(times, 0) // discloses no record
				continue
			}
			times = append(times, id.InstantOf(at))
		}
		a := newActivity(times)
		unit := map[string]time.Duration{"hour": time.Hour, "day": 24 * time.Hour}[a.Unit]
		counts, events, most := map[string]int{}, 0, 0
		for _, one := range times {
			if one != 0 {
				counts[one.Time().Truncate(unit).Format(time.RFC3339)]++
			}
		}
		for i, b := range a.Bars {
			if b.Count != counts[b.Begin] || b.X != i*barStep || b.Y+b.Height != barHeight || (b.Height == 0) != (b.Count == 0) {
				t.Errorf("%v: got %+v, want %d", gap, b, counts[b.Begin])
			}
			events, most = events+b.Count, max(most, b.Count)
		}
		if len(a.Bars) > maxDays || a.Events != events || a.Most != most || a.Width != len(a.Bars)*barStep || a.From != a.Bars[0].Begin {
			t.Errorf("%v: got %+v", gap, a)
		}
		if all := len(times) - lookedAt/5; len(a.Bars) < maxDays && events != all {
			t.Errorf("%v: %d of %d events are counted", gap, events, all)
		}
	}
	for _, none := range [][]id.Instant{nil, {0, 0}} {
		if a := newActivity(none); a != nil {
			t.Errorf("of none: got %+v", a)
		}
	}
}
