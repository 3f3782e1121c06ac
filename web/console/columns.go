package console

import (
	"fmt"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"slices"
	"time"
)

// columns is a chart of counts over time. All columns cover equal times, including times without events.
type columns struct {
	Unit     string // the time that a column covers, in words
	Columns  []column
	Width    int // of the chart, in its own units; the height is 100
	Max      uint64
	MaxAt    string // when the highest column begins
	From, To string // start times of the first and last columns
}

// column is the events of one period.
type column struct {
	At     string
	Events uint64
	X      int
	Y      string // of its upper end
	Height string
}

// maxColumns is the maximum number of columns of a chart.
const maxColumns = 240

// columnWidth is the width of a column with the space after it.
const columnWidth = 4

// fillRange adds empty hours at both ends of the requested range, so that the chart shows the whole range. For ranges
// by log index, or longer than the chart's days, only the times of the events are shown.
func fillRange(counts []wire.GroupCount, from, to string, now time.Time) []wire.GroupCount {
	if len(counts) == 0 {
		return nil
	}
	begin, err := time.Parse(time.RFC3339Nano, from)
	if err != nil {
		return counts
	}
	end, err := time.Parse(time.RFC3339Nano, to)
	if err != nil || end.After(now) {
		end = now
	}
	if !begin.Before(end) || end.Sub(begin) > (maxColumns-2)*24*time.Hour {
		return counts
	}
	first, last := id.InstantOf(begin), id.InstantOf(end.Add(-time.Nanosecond))
	return append(slices.Clone(counts), wire.GroupCount{Hour: &first}, wire.GroupCount{Hour: &last})
}

// newColumns draws hourly counts. It returns nil if there are no events. It ignores counts without an hour.
func newColumns(counts []wire.GroupCount) *columns {
	hours, first, last := make(map[int64]uint64), int64(0), int64(0)
	for _, c := range counts {
		if c.Hour == nil {
			continue
		}
		hour := c.Hour.Time().Unix() / 3600
		if len(hours) == 0 || hour < first {
			first = hour
		}
		if len(hours) == 0 || hour > last {
			last = hour
		}
		hours[hour] += c.Events
	}
	if len(hours) == 0 {
		return nil
	}
	unit := columnHours(last - first + 1)
	first -= first % unit
	drawn := &columns{Unit: unitWords(unit), From: hourText(first), To: hourText(last - last%unit)}
	sums := make([]uint64, (last-first)/unit+1)
	for hour, events := range hours {
		sums[(hour-first)/unit] += events
	}
	for i, events := range sums {
		if events > drawn.Max {
			drawn.Max, drawn.MaxAt = events, hourText(first+int64(i)*unit)
		}
	}
	for i, events := range sums {
		height := 100 * float64(events) / float64(drawn.Max)
		drawn.Columns = append(drawn.Columns, column{At: hourText(first + int64(i)*unit), Events: events,
			X: i * columnWidth, Y: fmt.Sprintf("%.1f", 100-height), Height: fmt.Sprintf("%.1f", height)})
	}
	drawn.Width = len(sums) * columnWidth
	return drawn
}

// columnHours returns the number of hours per column, so that there are at most maxColumns.
func columnHours(hours int64) int64 {
	for _, unit := range []int64{1, 24, 24 * 7} {
		if hours/unit+2 <= maxColumns {
			return unit
		}
	}
	return hours/(maxColumns-2) + 1
}

func unitWords(hours int64) string {
	switch hours {
	case 1:
		return "hour"
	case 24:
		return "day"
	case 24 * 7:
		return "week"
	}
	return fmt.Sprintf("%d hours", hours)
}

func hourText(hour int64) string { return time.Unix(hour*3600, 0).UTC().Format("2006-01-02T15:04Z") }
