package console

import (
	"net/url"
	"slices"
	"time"

	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

func (p *pages) readingScreens() []page.Screen {
	return slices.Concat(p.actScreens(), p.viewScreens(), p.eventScreens(), p.traceScreens(), p.otherScreens(), p.shareScreens())
}

func (p *pages) actScreens() []page.Screen {
	return []page.Screen{
		{Pattern: activityPage, Query: append(searchParameters(), "after", "before", "limit"), Views: p.views, Name: "activity", Title: "Activity",
			Show: p.listActs, Script: "activity.js", Modules: []string{"activity.js", "actcheck.js", "longsearch.js", "live.js", "times.js"}},
		{Pattern: actsPage + "/{act}", Query: searchParameters(), Views: p.views, Name: "act", Show: p.showAct, Script: "act.js",
			Modules: []string{"act.js", "actcheck.js", "times.js"}},
	}
}

func (p *pages) eventScreens() []page.Screen {
	return []page.Screen{
		{Pattern: "/console/events", Query: append(eventFilters(),
			"q", "order", "limit", "after"), Views: p.views, Name: "events", Title: "Events", Show: p.listEvents,
			Script: "eventspage.js", Modules: []string{"eventspage.js", "longsearch.js", "live.js", "times.js"}},
		{Pattern: "/console/events/{event}", Query: []string{"log"}, Views: p.views, Name: "event", Show: p.showEvent,
			Forms: map[string]page.Form{"erase": p.eraseEvent}},
		{Pattern: "/console/erasures", Query: []string{"by", "name", "after"},
			Views: p.views, Name: "erasures", Title: "Erasures", Show: p.listErasures,
			Forms: map[string]page.Form{"erase": p.eraseMany}},
		{Pattern: "/console/erasures/{erasure}", Views: p.views, Name: "erasure", Title: "Erasure",
			Show: p.showErasure, Script: page.LiveScript, Modules: page.LiveModules()},
	}
}

func (p *pages) traceScreens() []page.Screen {
	return []page.Screen{
		{Pattern: "/console/traces", Query: append(eventFilters(),
			"limit", "after"), Views: p.views, Name: "traces", Title: "Traces", Show: p.listTraces},
		{Pattern: "/console/traces/{trace}", Query: []string{"after", "log"},
			Views: p.views, Name: "trace", Show: p.showTrace},
		{Pattern: "/console/runs", Query: []string{"status", "agent_id", "after"},
			Views: p.views, Name: "runs", Title: "Runs", Show: p.listRuns},
		{Pattern: "/console/runs/{run}", Query: []string{"after"}, Views: p.views, Name: "run", Show: p.showRun},
	}
}

func (p *pages) otherScreens() []page.Screen {
	return []page.Screen{
		{Pattern: "/console/stats", Query: []string{"from", "to", "log"},
			Views: p.views, Name: "stats", Title: "Statistics", Show: p.showStats},
		{Pattern: "/console/audit", Query: []string{"actor", "kind", "from", "to", "order", "after"},
			Views: p.views, Name: "audit", Title: "Audit", Show: p.listAudit},
		{Pattern: "/console/evidence", Query: []string{"from", "to", "agent_id", "tool", "trace_id", "columns"},
			Views: p.views, Name: "evidence", Title: "Evidence", Show: p.showEvidence,
			Forms: map[string]page.Form{"make": p.makePack}},
		{Pattern: coveragePage, Views: p.views, Name: "coverage", Title: "Coverage", Show: p.showCoverage,
			Forms: map[string]page.Form{"compare": p.compareCalls}, MaxForm: maxForm, Files: true},
	}
}

// completeTime completes a time that a user typed, in UTC: a day, or a day with hours and minutes. It returns other
// texts unchanged for the interface, which accepts complete times and log indices.
func completeTime(text string) string {
	for _, form := range []string{"2006-01-02", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02 15:04:05"} {
		if at, err := time.Parse(form, text); err == nil {
			return at.Format("2006-01-02T15:04:05Z")
		}
	}
	return text
}

// listQuery returns the parameters of a list, with completed times.
func listQuery(r *page.Request, names ...string) url.Values {
	query := r.ListQuery(names...)
	for _, name := range []string{"from", "to"} {
		if text := query.Get(name); text != "" {
			query.Set(name, completeTime(text))
		}
	}
	return query
}

// filters are the list parameters that the user chose, by name.
type filters map[string]string

func readFilters(r *page.Request, names ...string) filters {
	f := filters{}
	for _, name := range names {
		if value := r.Query(name); value != "" {
			f[name] = value
		}
	}
	return f
}

// streams are the addresses of a list as one file. The interface serves them.
type streams struct{ CSV, NDJSON string }

// streamsOf returns the files of a list of the interface, with the parameters of the displayed list.
func streamsOf(r *page.Request, call string, query url.Values) streams {
	all := url.Values{}
	for name, values := range query {
		if name != "after" && name != "limit" {
			all[name] = values
		}
	}
	address := func(format string) string {
		all.Set("format", format)
		return r.Address(call) + "?" + all.Encode()
	}
	return streams{address("csv"), address("ndjson")}
}

// predecessor is the frozen log that preceded the displayed one.
type predecessor struct {
	wire.Predecessor
	URL string // the same page for that log
}

// linkPredecessor adds the address of the current page for the preceding log.
func linkPredecessor(r *page.Request, p *wire.Predecessor) *predecessor {
	if p == nil {
		return nil
	}
	query := r.URL.Query()
	query.Del("after")
	query.Del("notice")
	query.Set("log", string(p.Log))
	return &predecessor{*p, r.Kit.Base + r.URL.EscapedPath() + "?" + query.Encode()}
}
