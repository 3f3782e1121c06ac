package console

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// outcomeChart is a chart of acts over time, stacked by outcome.
type outcomeChart struct {
	Bars   []outcomeBar
	Width  int      // of the picture, whose height is chartHeight
	Unit   string   // the time of a column, in words
	Top    uint64   // of the axis
	Half   uint64   // of the axis; 0 if it is not a whole number
	Labels []string // of the time axis, at equal distances
	Label  string   // for readers who do not see the picture
	Tall   bool
}

// outcomeBar is the acts of one period.
type outcomeBar struct {
	X     int
	When  string // with the numbers
	Parts []barPart
}

// barPart is a rectangle. Class is a class of the style sheet.
type barPart struct {
	Class     string
	X         float64
	Y, Height string
}

// Sizes of a chart, in its own units.
const (
	maxBarsOver = 60 // columns of a chart over time
	fewBars     = 12 // at least, of a chart from the first act
	barStep     = 10 // from one column to the next
	chartHeight = 48
)

// longestMargin is the longest time that a chart shows before the first act, and after the last one. It keeps the range within a Duration.
const longestMargin = 100 * 365 * 24 * time.Hour

// outcomeGroups returns the outcomes by the classes of the chart, from the foot of a column.
func outcomeGroups() []struct {
	class, words string
	outcomes     []string
} {
	return []struct {
		class, words string
		outcomes     []string
	}{
		{"f-done", "done", []string{"done"}},
		{"f-open", "open or ended", []string{"expired", "cancelled", "unknown", "open"}},
		{"f-bad", "refused, denied or failed", []string{"refused", "denied", "failed"}},
		{"f-wait", "waiting", []string{"waiting"}},
	}
}

// fillOf returns the class of an outcome's colour.
func fillOf(outcome string) string {
	for _, g := range outcomeGroups() {
		if slices.Contains(g.outcomes, outcome) {
			return g.class
		}
	}
	return ""
}

// chartUnit returns the length of the columns of a range, in hours, so that there are at most maxBarsOver.
func chartUnit(length time.Duration) int64 {
	hours := int64(length/time.Hour) + 1
	for _, unit := range []int64{1, 6, 24, 7 * 24, 28 * 24} {
		if hours/unit+2 <= maxBarsOver {
			return unit
		}
	}
	return (hours/(maxBarsOver-2)/24 + 1) * 24
}

// countOverTime counts the acts that a query selects, and draws them over the range [from, to) as far as it has begun. A zero time is that of
// the first act, or now. It returns the counts by time, and those by more.
func countOverTime(r *page.Request, query url.Values, from, to, now time.Time, more ...string) (found []wire.Stats, chart *outcomeChart, err error) {
	end := to
	if end.IsZero() || end.After(now) {
		end = now
	}
	begin := from
	if begin.IsZero() { // no act is older than the organization
		organization, err := visitOf(r).Console.ShowOrganization(r.Context(), visitOf(r).caller)
		if err != nil {
			return nil, nil, err
		}
		begin = organization.CreatedAt.Time()
	}
	unit := "day"
	if chartUnit(end.Sub(begin)) < 24 {
		unit = "hour"
	}
	found, err = countActsBy(r, query, slices.Insert(slices.Clone(more), 0, "outcome,"+unit)...)
	if len(more) > 0 && fault.Is(err, fault.Invalid) { // perhaps there are too many days; the other counts don't need them
		if found, err = countActsBy(r, query, slices.Insert(slices.Clone(more), 0, "")...); err == nil {
			return found, nil, nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if unit == "day" && from.IsZero() && isShort(found[0].Counts) {
		byHour, err := countActsBy(r, query, "outcome,hour")
		if err != nil {
			return nil, nil, err
		}
		found[0] = byHour[0]
	}
	if to.IsZero() && from.IsZero() { // the acts give the range
		end = time.Time{}
	}
	return found, newOutcomeChart(found[0].Counts, from, end), nil
}

// isShort reports whether counts by day are of at most two days.
func isShort(counts []wire.ActCount) bool {
	days := make(map[id.Instant]bool)
	for _, c := range counts {
		if days[*c.Day] = true; len(days) > 2 {
			return false
		}
	}
	return true
}

// newOutcomeChart draws counts by outcome and hour or day, in the range [from, to). If from or to is zero, the counts give it. It returns
// nil if there are no acts.
func newOutcomeChart(counts []wire.ActCount, from, to time.Time) *outcomeChart {
	at := func(c wire.ActCount) time.Time {
		if c.Hour != nil {
			return c.Hour.Time().UTC()
		}
		return c.Day.Time().UTC()
	}
	if len(counts) == 0 {
		return nil
	}
	first, last := slices.MinFunc(counts, func(a, b wire.ActCount) int { return at(a).Compare(at(b)) }), slices.MaxFunc(counts, func(a, b wire.ActCount) int { return at(a).Compare(at(b)) })
	young := from.IsZero()
	if from.IsZero() || at(first).Before(from) {
		from = at(first)
	}
	if !to.After(at(last)) {
		to = at(last).Add(time.Hour)
	}
	if earliest := at(first).Add(-longestMargin); from.Before(earliest) {
		from = earliest
	}
	if latest := at(last).Add(longestMargin); to.After(latest) {
		to = latest
	}
	unit := chartUnit(to.Sub(from))
	if first.Day != nil {
		unit = max(unit, 24)
	}
	length := time.Duration(unit) * time.Hour
	from = from.Truncate(min(length, 24*time.Hour))
	if few := to.Add(-fewBars * length).Truncate(min(length, 24*time.Hour)); young && few.Before(from) {
		from = few
	}
	sums := make([]map[string]uint64, (to.Sub(from)+length-1)/length)
	for _, c := range counts {
		n := int(at(c).Sub(from) / length)
		if sums[n] == nil {
			sums[n] = make(map[string]uint64)
		}
		sums[n][*c.Outcome] += c.Acts
	}
	chart := &outcomeChart{Width: len(sums) * barStep, Unit: unitWords(unit)}
	all, most := make(map[string]uint64), uint64(0)
	for _, sum := range sums {
		total := uint64(0)
		for outcome, n := range sum {
			all[outcome] += n
			total += n
		}
		most = max(most, total)
	}
	chart.Top = axisTop(most)
	if chart.Top%2 == 0 {
		chart.Half = chart.Top / 2
	}
	for n, sum := range sums {
		begin := from.Add(time.Duration(n) * length)
		chart.Bars = append(chart.Bars, newOutcomeBar(n*barStep, periodText(begin, unit)+": ", sum, chart.Top))
	}
	const labels = 4
	for i := range min(labels, len(sums)) {
		begin := from.Add(time.Duration(i*len(sums)/min(labels, len(sums))) * length)
		text := periodText(begin, unit)
		if from.Year() == to.Year() {
			text = strings.TrimSuffix(text, begin.Format(" 2006"))
		}
		chart.Labels = append(chart.Labels, text)
	}
	chart.Label = fmt.Sprintf("Acts from %s on, a column is %s: %s", chart.Labels[0], chart.Unit, groupWords(all))
	return chart
}

// unitWords returns the length of a column in words.
func unitWords(hours int64) string {
	switch hours {
	case 1:
		return "an hour"
	case 24:
		return "a day"
	case 24 * 7:
		return "a week"
	}
	return fmt.Sprintf("%d hours", hours)
}

func newOutcomeBar(x int, when string, sum map[string]uint64, top uint64) outcomeBar {
	b := outcomeBar{X: x, When: when + groupWords(sum)}
	y := float64(chartHeight)
	for _, g := range outcomeGroups() {
		n := uint64(0)
		for _, o := range g.outcomes {
			n += sum[o]
		}
		if n == 0 {
			continue
		}
		height := max(1.5, float64(n)*chartHeight/float64(top))
		y -= height
		b.Parts = append(b.Parts, barPart{Class: g.class, X: float64(x) + 1.5, Y: fmt.Sprintf("%.1f", y), Height: fmt.Sprintf("%.1f", height-0.5)})
	}
	return b
}

// groupWords describes sums by outcome.
func groupWords(sum map[string]uint64) string {
	var words []string
	for _, g := range outcomeGroups() {
		n := uint64(0)
		for _, o := range g.outcomes {
			n += sum[o]
		}
		if n > 0 {
			words = append(words, strconv.FormatUint(n, 10)+" "+g.words)
		}
	}
	if len(words) == 0 {
		return "no act"
	}
	return strings.Join(words, ", ")
}

// axisTop returns a round number that is at least n.
func axisTop(n uint64) uint64 {
	for scale := uint64(1); ; scale *= 10 {
		for _, step := range []uint64{1, 2, 4, 6} {
			if top := step * scale; top >= n || scale > n {
				return top
			}
		}
	}
}

// periodText returns the begin of a column that covers some hours.
func periodText(at time.Time, hours int64) string {
	if hours < 24 {
		return at.Format("2 Jan 15:04")
	}
	return at.Format("2 Jan 2006")
}
