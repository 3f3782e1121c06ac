package console

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"math/rand/v2"
	"testing"
	"time"
)

func hours(at ...string) (counts []wire.GroupCount) {
	for i, hour := range at {
		when, err := time.Parse(time.RFC3339Nano, hour)
		if err != nil {
			panic(err)
		}
		instant := id.InstantOf(when)
		counts = append(counts, wire.GroupCount{Hour: &instant, Events: uint64(i + 1)})
	}
	return counts
}

func TestColumns(t *testing.T) {
	t.Parallel()
	if got := newColumns(nil); got != nil {
		t.Errorf("no events: got %+v", got)
	}
	got := newColumns(hours("2026-01-31T12:00:00.000Z", "2026-01-31T15:00:00.000Z", "2026-01-31T13:00:00.000Z"))
	if got.Unit != "hour" || len(got.Columns) != 4 || got.Max != 3 || got.MaxAt != "2026-01-31T13:00Z" || got.From != "2026-01-31T12:00Z" || got.To != "2026-01-31T15:00Z" {
		t.Errorf("got %+v", got)
	}
	if c := got.Columns[3]; c.X != 3*columnWidth || c.Events != 2 || c.Y != "33.3" || c.Height != "66.7" {
		t.Errorf("got %+v", c)
	}
	for from, want := range map[string]string{"2026-01-30T00:00:00Z": "hour", "2026-01-01T00:00:00Z": "day", "2025-01-01T00:00:00Z": "week", "1970-01-01T00:00:00Z": "2066 hours"} {
		if got := newColumns(hours(from, "2026-01-31T12:00:00Z")).Unit; got != want {
			t.Errorf("from %s: got %s, want %s", from, got, want)
		}
	}
}

// A chart shows the whole requested range if the range is short enough and not in the future.
func TestFillRange(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 15, 30, 0, 0, time.UTC)
	counts := hours("2026-01-31T12:00:00Z")
	for name, tt := range map[string]struct {
		from, to string
		want     [2]string
	}{
		"a begin":           {"2026-01-31T09:30:00Z", "", [2]string{"2026-01-31T09:00Z", "2026-01-31T15:00Z"}},
		"an end":            {"2026-01-31T12:00:00Z", "2026-01-31T14:00:00Z", [2]string{"2026-01-31T12:00Z", "2026-01-31T13:00Z"}},
		"an end to come":    {"2026-01-31T12:00:00Z", "2099-01-01T00:00:00Z", [2]string{"2026-01-31T12:00Z", "2026-01-31T15:00Z"}},
		"an index":          {"0", "", [2]string{"2026-01-31T12:00Z", "2026-01-31T12:00Z"}},
		"a range too long":  {"1970-01-01T00:00:00Z", "", [2]string{"2026-01-31T12:00Z", "2026-01-31T12:00Z"}},
		"an end at a begin": {"2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z", [2]string{"2026-01-31T12:00Z", "2026-01-31T12:00Z"}},
	} {
		got := newColumns(fillRange(counts, tt.from, tt.to, now))
		if got := [2]string{got.From, got.To}; got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
	if got := newColumns(fillRange(nil, "2026-01-31T09:30:00Z", "", now)); got != nil {
		t.Errorf("no events: got %+v", got)
	}
}

// No range has more columns than the limit, and the columns lose no event.
func TestColumnsLoseNoEvents(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		span := 1 + random.IntN(1+random.IntN(300_000))
		var counts []wire.GroupCount
		events := uint64(0)
		for range 1 + random.IntN(30) {
			at := time.Unix(1_700_000_000, 0).Truncate(time.Hour).Add(time.Duration(random.IntN(span)) * time.Hour)
			hour := id.InstantOf(at)
			counts = append(counts, wire.GroupCount{Hour: &hour, Events: 1 + random.Uint64N(9)})
			events += counts[len(counts)-1].Events
		}
		got := newColumns(counts)
		for _, c := range got.Columns {
			events -= c.Events
		}
		if len(got.Columns) > maxColumns || events != 0 {
			t.Fatalf("%v: got %d columns, %d events are missing", counts, len(got.Columns), events)
		}
	}
}

func TestCompleteTime(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "17": "17", "2026-01-31": "2026-01-31T00:00:00Z", "2026-01-31 12:30": "2026-01-31T12:30:00Z", "2026-01-31T12:30": "2026-01-31T12:30:00Z",
		"2026-01-31 12:30:05": "2026-01-31T12:30:05Z", "2026-01-31T12:00:00.5Z": "2026-01-31T12:00:00.5Z", "2026-02-30": "2026-02-30", "yesterday": "yesterday",
	} {
		if got := completeTime(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestDurationWords(t *testing.T) {
	t.Parallel()
	for milliseconds, want := range map[int64]string{0: "0s", 12: "12ms", 1234: "1.2s", 90_000: "1m30s", 7_200_400: "2h0m0s"} {
		if got := waitWords(&milliseconds); got != want {
			t.Errorf("%d: got %s, want %s", milliseconds, got, want)
		}
	}
	if got := waitWords(nil); got != "–" {
		t.Errorf("none: got %s", got)
	}
}

// A chart is bounded and states how much it omits.
func TestChartBounds(t *testing.T) {
	t.Parallel()
	var found wire.Stats
	rule, none := "r", ""
	for range 40 {
		found.Counts = append(found.Counts, wire.GroupCount{Rule: &rule, Events: 2})
		found.Events += 2
	}
	found.Counts = append(found.Counts, wire.GroupCount{Rule: &none, Events: 20})
	found.Events += 20
	got := newChart(nil, dimension{"rule", "Rules", func(c wire.GroupCount) string { return textOf(c.Rule) }, ""}, nil, found)
	if len(got.Bars) != maxBars || got.Others != 26 || got.OtherEvents != 52 || got.Bars[0].Share != "100.00%" || got.Bars[1].Share != "10.00%" {
		t.Errorf("got %+v", got)
	}
}
