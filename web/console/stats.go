package console

import (
	"cmp"
	"net/url"
	"slices"
	"time"

	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// waits are the waiting times of approvals on a page.
type waits struct{ wire.Waits }

// Half returns the median waiting time, in words.
func (w waits) Half() string { return waitWords(w.P50) }

// Most returns the 99th percentile of the waiting times, in words.
func (w waits) Most() string { return waitWords(w.P99) }

func waitWords(milliseconds *int64) string {
	if milliseconds == nil {
		return "–"
	}
	d := time.Duration(*milliseconds) * time.Millisecond
	switch {
	case d < time.Second:
		return d.String()
	case d < time.Hour:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// statsView is the content of the page of counts.
type statsView struct {
	Events      uint64
	From, To    string // of the query, for display
	Filter      filters
	Charts      []chart
	Hours       *columns // nil if there are no events
	Waits       waits
	Ranges      []rangeLink
	Predecessor *predecessor
}

// rangeLink links to the counts of a common range.
type rangeLink struct {
	Title, URL string
	Current    bool
}

// usualDays is the range of the page if its address contains none.
const usualDays = 7

func (p *pages) showStats(r *page.Request) (any, error) {
	query := listQuery(r, "from", "to", "log")
	query.Del("after")
	now := time.Now().UTC()
	if !query.Has("from") && !query.Has("to") {
		query.Set("from", daysBefore(now, usualDays))
	}
	v := &statsView{From: query.Get("from"), To: query.Get("to"), Ranges: usualRanges(r, now),
		Filter: readFilters(r, "from", "to", "log")}
	dimensions := []dimension{
		{"agent", "Agents", func(c wire.GroupCount) string { return textOf(c.Agent) }, "agent_id"},
		{"tool", "Tools", func(c wire.GroupCount) string { return textOf(c.Tool) }, "tool"},
		{"decision", "Decisions in force", func(c wire.GroupCount) string { return textOf(c.Decision) }, "decision"},
		{"rule", "Rules that decided", func(c wire.GroupCount) string { return textOf(c.Rule) }, ""},
	}
	for _, d := range dimensions {
		found, err := countBy(r, query, d.name)
		if err != nil {
			return nil, err
		}
		if d.name == "agent" {
			v.Events, v.Waits, v.Predecessor = found.Events, waits{found.Waits}, linkPredecessor(r, found.Predecessor)
		}
		v.Charts = append(v.Charts, newChart(r, d, query, found))
	}
	hours, err := countBy(r, query, "hour")
	v.Hours = newColumns(fillRange(hours.Counts, v.From, v.To, now))
	return v, err
}

// textOf returns a string, or "" if s is nil.
func textOf[S ~string](s *S) string {
	if s == nil {
		return ""
	}
	return string(*s)
}

func countBy(r *page.Request, query url.Values, name string) (found wire.Stats, err error) {
	asked := url.Values{"by": {name}}
	for parameter, values := range query {
		asked[parameter] = values
	}
	found, err = visitOf(r).Console.CountEvents(r.Context(), visitOf(r).caller, asked)
	return found, r.Correctable(err)
}

func daysBefore(now time.Time, days int) string {
	return now.AddDate(0, 0, -days).Truncate(time.Hour).Format("2006-01-02T15:04:05Z")
}

// usualRanges returns links to common ranges.
func usualRanges(r *page.Request, now time.Time) (links []rangeLink) {
	add := func(title, from string) {
		query := url.Values{"from": {from}}
		if log := r.Query("log"); log != "" {
			query.Set("log", log)
		}
		current := r.Query("from") == from && r.Query("to") == ""
		links = append(links, rangeLink{title, r.Address("/console/stats") + "?" + query.Encode(), current})
	}
	add("A day", daysBefore(now, 1))
	add("A week", daysBefore(now, usualDays))
	add("30 days", daysBefore(now, 30))
	add("All events", "0")
	return links
}

// dimension is an attribute by which events are counted.
type dimension struct {
	name, title string
	label       func(wire.GroupCount) string
	filter      string // parameter of event lists; "" if none
}

// chart is a list of bars.
type chart struct {
	Name, Title string
	Bars        []bar
	Others      int    // groups without a bar
	OtherEvents uint64 // events in them
}

// bar is one group: its events and their share of the largest group.
type bar struct {
	Label  string // "" for events without a value
	Events uint64
	Share  string // in percent
	URL    string // list of the events; "" if none
}

// maxBars is the maximum number of bars of a dimension.
const maxBars = 15

func newChart(r *page.Request, d dimension, query url.Values, found wire.Stats) chart {
	c := chart{Name: d.name, Title: d.title}
	groups := slices.Clone(found.Counts)
	slices.SortStableFunc(groups, func(a, b wire.GroupCount) int { return cmp.Compare(b.Events, a.Events) })
	shown := uint64(0)
	for i, g := range groups {
		if i == maxBars {
			c.Others, c.OtherEvents = len(groups)-maxBars, found.Events-shown
			break
		}
		one := bar{Label: d.label(g), Events: g.Events,
			Share: percent(100 * float64(g.Events) / float64(max(1, groups[0].Events)))}
		if d.filter != "" && one.Label != "" {
			link := url.Values{d.filter: {one.Label}}
			for _, name := range []string{"from", "to", "log"} {
				if query.Has(name) {
					link.Set(name, query.Get(name))
				}
			}
			one.URL = r.Address("/console/events") + "?" + link.Encode()
		}
		c.Bars = append(c.Bars, one)
		shown += g.Events
	}
	return c
}
