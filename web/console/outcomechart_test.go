package console

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
)

// Every act is in one of at most 60 columns of equal length, which the range has room for.
func TestOutcomeChart(t *testing.T) {
	t.Parallel()
	if newOutcomeChart(nil, time.Time{}, time.Time{}) != nil {
		t.Error("a chart of no act")
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		begin := time.Date(2020+r.IntN(7), time.Month(1+r.IntN(12)), 1+r.IntN(28), r.IntN(24), 0, 0, 0, time.UTC)
		length := time.Duration(1+r.IntN(1<<(1+r.IntN(15)))) * time.Hour
		from, to := begin, begin.Add(length)
		byDay := chartUnit(length) >= 24
		var counts []wire.ActCount
		all := map[string]uint64{}
		for range 1 + r.IntN(40) {
			at := begin.Add(time.Duration(r.Int64N(int64(length))))
			outcome := wire.Outcomes()[r.IntN(len(wire.Outcomes()))]
			c := wire.ActCount{Outcome: &outcome, Acts: 1 + r.Uint64N(9)}
			hour, day := id.InstantOf(at.Truncate(time.Hour)), id.InstantOf(at.Truncate(24*time.Hour))
			if c.Hour = &hour; byDay {
				c.Hour, c.Day = nil, &day
			}
			all[outcome] += c.Acts
			counts = append(counts, c)
		}
		if r.IntN(3) == 0 {
			from, to = time.Time{}, time.Time{}
		}
		chart := newOutcomeChart(counts, from, to)
		if len(chart.Bars) > maxBarsOver || from.IsZero() && len(chart.Bars) < fewBars || chart.Width != len(chart.Bars)*barStep {
			t.Fatalf("%v from %v: %d columns", length, from, len(chart.Bars))
		}
		drawn := map[string]uint64{}
		for _, b := range chart.Bars {
			_, words, _ := strings.Cut(b.When, ": ")
			for _, part := range strings.Split(words, ", ") {
				var n uint64
				var name string
				if _, err := fmt.Sscanf(part, "%d %s", &n, &name); err == nil {
					drawn[name] += n
				}
			}
		}
		for _, g := range outcomeGroups() {
			want := uint64(0)
			for _, o := range g.outcomes {
				want += all[o]
			}
			if name := strings.TrimSuffix(strings.Fields(g.words)[0], ","); g.class != "f-bad" && drawn[name] != want {
				t.Fatalf("%v: drawn %v, want %d %s", length, drawn, want, name)
			}
		}
	}
	for n, want := range map[uint64]uint64{0: 1, 1: 1, 2: 2, 3: 4, 5: 6, 7: 10, 10: 10, 11: 20, 61: 100, 1 << 63: 10_000_000_000_000_000_000} {
		if got := axisTop(n); got != want {
			t.Errorf("the axis for %d ends at %d, want %d", n, got, want)
		}
	}
}

// A range that is longer than a Duration has a chart too.
func TestLongOutcomeChart(t *testing.T) {
	t.Parallel()
	outcome, day := "done", id.InstantOf(time.Date(2026, 11, 3, 0, 0, 0, 0, time.UTC))
	counts := []wire.ActCount{{Outcome: &outcome, Day: &day, Acts: 3}}
	year := func(n int) time.Time { return time.Date(n, 1, 1, 0, 0, 0, 0, time.UTC) }
	for name, bounds := range map[string][2]time.Time{
		"no begin":         {{}, year(2401)},
		"no end":           {year(1), {}},
		"long after":       {year(2020), year(9999)},
		"long before":      {year(1), year(2027)},
		"all years":        {year(1), year(9999)},
		"of other acts":    {year(2400), year(2401)},
		"in another order": {year(2401), year(2020)},
	} {
		chart := newOutcomeChart(counts, bounds[0], bounds[1])
		if len(chart.Bars) > maxBarsOver || !strings.HasSuffix(chart.Label, ": 3 done") {
			t.Errorf("%s: %d columns, %s", name, len(chart.Bars), chart.Label)
		}
	}
}

// An act counts for each of its approvers, so the rows may add up to more than the acts.
func TestOtherRows(t *testing.T) {
	found := wire.Stats{Acts: maxBars + 1}
	for range maxBars + 2 {
		found.Counts = append(found.Counts, wire.ActCount{Acts: 2})
	}
	c := newChart(nil, dimension{label: func(wire.ActCount) string { return "" }}, nil, found)
	if len(c.Bars) != maxBars || c.Others != 2 || c.OtherActs != 4 {
		t.Errorf("got %d rows and %d others with %d acts, want %d, 2 and 4", len(c.Bars), c.Others, c.OtherActs, maxBars)
	}
}
