package console

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// approvalCounts are the approvals of the counted acts.
type approvalCounts struct{ wire.ApprovalCounts }

// Half returns the median time until a decision, in words.
func (a approvalCounts) Half() string { return waitWords(a.P50) }

// Most returns the 90th percentile of the times until a decision, in words.
func (a approvalCounts) Most() string { return waitWords(a.P90) }

// Decided returns the number of approvals that approvers decided.
func (a approvalCounts) Decided() uint64 { return a.Approved + a.Refused }

// Rate returns the share of the decided approvals that were approved, in words.
func (a approvalCounts) Rate() string {
	if a.Decided() == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f%%", 100*float64(a.Approved)/float64(a.Decided()))
}

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
	Acts        uint64
	From, To    string // of the query, for display
	Filter      filters
	Charts      []chart
	Chart       *outcomeChart // nil if there are no acts
	Approvals   approvalCounts
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

func (p *pages) showStats(r *page.Request) (_ any, err error) {
	query := listQuery(r, "from", "to", "log")
	query.Del("after")
	now := time.Now().UTC()
	if !query.Has("from") && !query.Has("to") {
		query.Set("from", daysBefore(now, usualDays))
	}
	v := &statsView{From: query.Get("from"), To: query.Get("to"), Ranges: usualRanges(r, now),
		Filter: readFilters(r, "from", "to", "log")}
	dimensions := []dimension{
		{"outcome", "Outcomes", func(c wire.ActCount) string { return textOf(c.Outcome) }, "outcome"},
		{"agent", "Agents", func(c wire.ActCount) string { return textOf(c.Agent) }, "agent"},
		{"tool", "Tools", func(c wire.ActCount) string { return textOf(c.Tool) }, "tool"},
		{"decision", "Decisions of the policy", func(c wire.ActCount) string {
			return strings.ReplaceAll(textOf(c.Decision), "allow_with_obligation", "needs approval")
		}, "decision"},
		{"rule", "Rules that decided", func(c wire.ActCount) string { return textOf(c.Rule) }, ""},
		{"approver", "Approvers", func(c wire.ActCount) string {
			return cmp.Or(textOf(c.ApproverName), textOf(c.ApproverEmail), textOf(c.Approver))
		}, "approver"},
	}
	var names []string
	for _, d := range dimensions {
		names = append(names, d.name)
	}
	from, _ := time.Parse(time.RFC3339Nano, v.From) // zero for a log index
	to, _ := time.Parse(time.RFC3339Nano, v.To)
	found, overTime, err := countOverTime(r, query, from, to, now, names...)
	if err = r.Correctable(err); err != nil {
		return nil, err
	}
	if found == nil { // the query can be corrected
		found = make([]wire.Stats, 1+len(dimensions))
	}
	v.Acts, v.Approvals, v.Predecessor = found[0].Acts, approvalCounts{found[0].Approvals}, linkPredecessor(r, found[0].Predecessor)
	for i, d := range dimensions {
		v.Charts = append(v.Charts, newChart(r, d, query, found[1+i]))
	}
	if v.Chart = overTime; v.Chart != nil {
		v.Chart.Tall = true
	}
	return v, nil
}

// textOf returns a string, or "" if s is nil.
func textOf[S ~string](s *S) string {
	if s == nil {
		return ""
	}
	return string(*s)
}

// countActs counts acts. counted is false if they can't be counted now.
func countActs(r *page.Request, query url.Values) (found wire.Stats, counted bool, err error) {
	found, err = visitOf(r).Console.CountActs(r.Context(), visitOf(r).caller, query)
	return found, err == nil, unlessUncountable(err)
}

// countActsBy counts acts by each of several lists of dimensions.
func countActsBy(r *page.Request, query url.Values, by ...string) ([]wire.Stats, error) {
	return visitOf(r).Console.CountActsBy(r.Context(), visitOf(r).caller, query, by...)
}

// unlessUncountable returns the error of a count, or nil if it means that acts can't be counted now: the index is being rebuilt, or there are
// too many groups.
func unlessUncountable(err error) error {
	if fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Invalid) {
		return nil
	}
	return err
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
	add("All acts", "0")
	return links
}

// dimension is an attribute by which acts are counted.
type dimension struct {
	name, title string
	label       func(wire.ActCount) string
	filter      string // key of the search of acts; "" if none
}

// chart is a list of bars.
type chart struct {
	Name, Title string
	Bars        []bar
	Others      int    // groups without a bar
	OtherActs   uint64 // acts in them
}

// bar is one group: its acts and their share of the largest group.
type bar struct {
	Label string // "" for acts without a value
	Acts  uint64
	Share string // in percent
	URL   string // list of the acts; "" if none
}

// maxBars is the maximum number of bars of a dimension.
const maxBars = 15

func newChart(r *page.Request, d dimension, query url.Values, found wire.Stats) chart {
	c := chart{Name: d.name, Title: d.title}
	groups := slices.Clone(found.Counts)
	slices.SortStableFunc(groups, func(a, b wire.ActCount) int { return cmp.Compare(b.Acts, a.Acts) })
	for i, g := range groups {
		if i >= maxBars { // not the rest of all acts, because an act counts for each of its approvers
			c.Others++
			c.OtherActs += g.Acts
			continue
		}
		one := bar{Label: d.label(g), Acts: g.Acts,
			Share: percent(100 * float64(g.Acts) / float64(max(1, groups[0].Acts)))}
		if d.filter != "" && one.Label != "" {
			link := url.Values{d.filter: {cmp.Or(textOf(g.Approver), textOf(g.Decision), one.Label)}}
			for _, name := range []string{"from", "to", "log"} {
				if query.Has(name) {
					link.Set(name, query.Get(name))
				}
			}
			one.URL = r.Address(activityPage) + "?" + link.Encode()
		}
		c.Bars = append(c.Bars, one)
	}
	return c
}
