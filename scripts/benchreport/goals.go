package main

import (
	"fmt"
	"regexp"
	"strings"
)

// goal is the target of a measure: at least want times the result of beside or, without versus, at most want.
type goal struct {
	measure string
	ours    pick
	beside  pick // the zero value means none
	want    float64
	versus  string // names beside; if empty, beside is only shown
}

// pick chooses one of the results: the median that is best, or with least the
// smallest one, of the benchmarks whose names match.
type pick struct {
	names string // regular expression
	unit  string
	least bool
}

func performanceGoals() []goal {
	const rate, requests = "events/s", "requests/s"
	of := func(names, unit string) pick { return pick{names: "^bench " + names, unit: unit} }
	least := func(names, unit string) pick { return pick{names: "^bench " + names, unit: unit, least: true} }
	single := of("ingest/ours/", rate)
	return []goal{
		{"durable, integrated appends in process, one tree", of("append/ours/", rate), of("append/tessera/", rate), 2,
			"Tessera"},
		{"one event a request over HTTP", single, of("ingest/tessera/", rate), 1.2, "Tessera behind net/http"},
		{"the same", single, of("ingest/floor/", rate), 0.75, "a server that does all but store"},
		{"many events a request over HTTP", of("engines/http/pebble/.*/lines=(64|1000)$", rate),
			of("ingest/tessera/", rate), 2.2, "Tessera behind net/http"},
		{"many events a request", of("engines/http/pebble/.*/lines=(64|1000)$", rate), single, 2, "one event a request"},
		{"covering checkpoint of 64 senders in process, p50", of("publish/ours/", "published-p50-µs"),
			least("publish/tessera/", "published-p50-µs"), 2_000, ""},
		{"1,000 organizations at once in process, the worse spread",
			least("organizations/in-process/count=1000/", rate), of("organizations/in-process/count=1/", rate), 0.7,
			"one organization"},
		{"1,000 organizations at once over HTTP, the worse spread", least("organizations/http/count=1000/", rate),
			of("organizations/http/count=1/", rate), 0.9, "one organization"},
		{"inclusion proof, random leaves, warm", of("read/ours/.*=inclusion$", requests),
			of("read/static/.*=inclusion$", requests), 0.6, "a static GET"},
		{"policy evaluation", of("read/ours/.*=evaluate$", requests), of("read/static/.*=evaluate$", requests), 0.7,
			"a static POST"},
		{"PostgreSQL, 64 events together, in process", of("engines/append/postgres/senders=16/", rate),
			of("engines/append/pebble/senders=16/", rate), 0.8, "the embedded engine"},
		{"PostgreSQL, 64 events a request over HTTP", of("engines/http/postgres/.*/lines=64$", rate),
			of("engines/http/pebble/.*/lines=64$", rate), 0.8, "the embedded engine"},
		{"PostgreSQL, 1,000 events a request over HTTP", of("engines/http/postgres/.*/lines=1000$", rate),
			of("engines/http/pebble/.*/lines=1000$", rate), 0.8, "the embedded engine"},
		{"PostgreSQL, one event a request, 64 connections", of("engines/http/postgres/.*/lines=1$", rate),
			of("engines/http/pebble/.*/lines=1$", rate), 0.7, "the embedded engine"},
		{"an event of 1 KiB on disk, embedded engine", of("engines/disk/pebble", "B/event"), pick{}, 640, ""},
		{"an event of 1 KiB on disk, PostgreSQL", of("engines/disk/postgres", "B/event"), pick{}, 800, ""},
	}
}

// choice is the result of a pick.
type choice struct {
	name    string
	value   float64
	unit    string
	latency string // of the same benchmark, "" for none
}

// chooseBest returns false if nothing matches.
func (p pick) chooseBest(r *results) (best choice, ok bool) {
	if p.names == "" {
		return best, false
	}
	names := regexp.MustCompile(p.names)
	for _, name := range r.names {
		values := r.values[name][p.unit]
		if len(values) == 0 || !names.MatchString(name) {
			continue
		}
		if m := median(values); !ok || m < best.value == p.least {
			best, ok = choice{name, m, p.unit, r.renderLatency(name)}, true
		}
	}
	return best, ok
}

func (c choice) String() string {
	if c.name == "" {
		return ""
	}
	name := strings.TrimPrefix(c.name, "bench ")
	return fmt.Sprintf("%s %s (%s%s)", formatNumber(c.value), c.unit, name, c.latency)
}

// renderLatency renders the latencies of a benchmark that reports a rate.
func (r *results) renderLatency(name string) string {
	p50, p99 := r.values[name]["p50-µs"], r.values[name]["p99-µs"]
	if len(p50) == 0 || len(p99) == 0 {
		return ""
	}
	return fmt.Sprintf(", p50 %s µs, p99 %s µs", formatNumber(median(p50)), formatNumber(median(p99)))
}

// renderRow renders the goal with the measured value, or "" if it was not measured.
func (g goal) renderRow(r *results) string {
	ours, ok := g.ours.chooseBest(r)
	beside, compared := g.beside.chooseBest(r)
	if !ok || g.versus != "" && !compared {
		return ""
	}
	want, reached, met := "≤ "+formatNumber(g.want)+" "+ours.unit, ours.value, ours.value <= g.want
	if g.versus != "" {
		want, reached = "≥ "+formatNumber(g.want)+" × "+g.versus, ours.value/beside.value
		met = reached >= g.want
	}
	verdict := "no"
	if met {
		verdict = "yes"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", g.measure, want, formatNumber(reached), verdict, ours,
		beside)
}

// renderGoals renders the goals for which there are results.
func (r *results) renderGoals() string {
	var rows strings.Builder
	for _, g := range performanceGoals() {
		rows.WriteString(g.renderRow(r))
	}
	if rows.Len() == 0 {
		return ""
	}
	return "## The table\n\n| measure | goal | reached | met | ours | beside |\n" +
		"|---|---|---:|---|---|---|\n" + rows.String() + "\n"
}
