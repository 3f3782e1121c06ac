package console

import (
	"fmt"
	"strings"
	"time"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/read/coverage"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/web/page"
)

const coveragePage = "/console/evidence/coverage"

// coverageView is the content of the page that compares a tool's record of calls with the log.
type coverageView struct {
	MayCompare bool
	Report     *coverageReport // nil before a comparison
}

// coverageReport is the result of a comparison.
type coverageReport struct {
	coverage.Report
	Title    string
	Compared int // calls in the range
	Matches  []matchCount
	Lists    []coverageList
	Weak     int  // matched by time alone
	Pasted   bool // rather than a file
}

// matchCount is how many calls a rule matched.
type matchCount struct {
	Rule  string
	Calls int
}

// coverageList is one kind of findings.
type coverageList struct {
	Name, Title, Hint string
	Count             int
	Rows              []coverageRow
}

// coverageRow is a call, an act, or both.
type coverageRow struct {
	coverage.Row
	Reason string // why the call is missing; "" for an act
	URL    string // of the act; "" without one
}

func (p *pages) showCoverage(r *page.Request) (any, error) {
	return &coverageView{MayCompare: r.Person.May("read payloads")}, nil
}

// compareCalls compares the record in the form: a file, or a text.
func (p *pages) compareCalls(r *page.Request) (page.Outcome, error) {
	file, text, source := r.Form.Get("file"), r.Form.Get("record"), "file"
	r.Form.Del("file") // it may be large, and a browser does not choose it again
	switch {
	case file != "" && text != "":
		return page.Outcome{}, fault.New(fault.Invalid, "record must be empty if a file is chosen")
	case file == "" && strings.TrimSpace(text) == "":
		return page.Outcome{}, fault.New(fault.Invalid, "file must be chosen, or its text be pasted")
	case file == "": // browsers send texts with CRLF line ends
		file, source = strings.ReplaceAll(text, "\r\n", "\n"), "record"
	}
	wanted := api.NewCoverage{Format: coverage.Format(r.Value("format")), File: file, ToolName: r.Value("tool"), Strict: r.Checked("strict")}
	for line := range strings.Lines(r.Form.Get("paths")) {
		if line = strings.TrimSpace(line); line != "" {
			wanted.Paths = append(wanted.Paths, line)
		}
	}
	for _, bound := range []struct {
		name string
		to   *time.Time
	}{{"from", &wanted.From}, {"to", &wanted.To}} {
		var err error
		if *bound.to, err = time.Parse(time.RFC3339Nano, completeTime(r.Value(bound.name))); err != nil {
			return page.Outcome{}, fault.New(fault.Invalid, bound.name+" must be a day or a time in UTC, such as 2026-01-31 or 2026-01-31 12:00")
		}
	}
	found, err := visitOf(r).Console.Compare(r.Context(), visitOf(r).caller, wanted)
	if fault.Is(err, fault.Invalid) { // name the field of the page
		if message, is := strings.CutPrefix(fault.Of(err).Message, "file: "); is {
			err = fault.Wrap(fault.Invalid, source+" can't be read: "+message, err)
		}
	}
	if err != nil {
		return page.Outcome{}, err
	}
	r.Form.Del("record") // it may be large
	report := describeCoverage(r, &found)
	report.Pasted = source == "record"
	return page.ShowAgain(&coverageView{MayCompare: true, Report: report}), nil
}

// missingBecause is why calls are missing, in the words of the page.
var missingBecause = map[coverage.Reason]string{
	coverage.Repeated:     "Made twice: another call has the act with its identifier",
	coverage.Conflict:     "Its identifier is of an act of another tool, agent or call",
	coverage.Taken:        "Other calls have the acts that fit",
	coverage.NoAct:        "No act fits",
	coverage.Unidentified: "It has no identifier and no time",
	coverage.TooWeak:      "An act fits by its time only",
}

func describeCoverage(r *page.Request, found *coverage.Report) *coverageReport {
	v := &coverageReport{Report: *found, Compared: found.Counts.Calls - found.Counts.Outside, Weak: found.Weak()}
	missing := found.Counts.Missing + found.Counts.Unpermitted
	switch {
	case v.Compared == 0:
		v.Title = "The record has no call in this range"
	case found.Covered:
		v.Title = "Each call has an act that permits it"
	default:
		v.Title = fmt.Sprintf("%d of %s %s no act that permits %s", missing, textcheck.Count(v.Compared, "call"), plural(missing, "has", "have"), plural(missing, "it", "them"))
	}
	for _, rule := range coverage.Rules() {
		if n := found.ByRule[rule.String()]; n > 0 {
			v.Matches = append(v.Matches, matchCount{rule.String(), n})
		}
	}
	for _, list := range []struct {
		coverageList
		rows []coverage.Row
	}{
		{coverageList{Name: "missing", Title: "Missing: calls without an act", Count: found.Counts.Missing}, found.Missing},
		{coverageList{Name: "unpermitted", Title: "Unpermitted: calls that were made although their act was not permitted", Count: found.Counts.Unpermitted}, found.Unpermitted},
		{coverageList{Name: "extra", Title: "Extra: permitted acts without a call", Count: found.Counts.Extra,
			Hint: "With Done or Failed, the agent states a call that the record lacks."}, found.Extra},
	} {
		for _, row := range list.rows {
			shown := coverageRow{Row: row, Reason: missingBecause[coverage.Reason(row.Reason)]}
			if row.Event != "" {
				shown.URL = r.Address(actsPage, string(row.Event))
			}
			list.Rows = append(list.Rows, shown)
		}
		if list.Count > 0 {
			v.Lists = append(v.Lists, list.coverageList)
		}
	}
	return v
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
