package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

const sample = `goos: linux
pkg: github.com/agentledger/agentledger/bench
Benchmarkappend/ours/senders=16 100 90000 events/s 10 p50-µs 20 p99-µs
Benchmarkappend/ours/senders=64 100 30000 events/s 10 p50-µs
Benchmarkappend/ours/senders=64 100 50000 events/s 10 p50-µs
Benchmarkappend/ours/senders=64 100 100000 events/s 10 p50-µs
Benchmarkappend/tessera/batch=8/age=2ms/senders=16 9 30000 events/s 10 p50-µs
Benchmarkpublish/ours/senders=64 900 700 ack-p50-µs 2500 published-p50-µs
Benchmarkorganizations/http/count=1/spread=uniform 1 1000 events/s
Benchmarkorganizations/http/count=1000/spread=uniform 1 990 events/s
Benchmarkorganizations/http/count=1000/spread=zipf 1 950 events/s
pkg: github.com/agentledger/agentledger/log
BenchmarkInclusion-2 5000 2100 ns/op 300 B/op
`

func TestReport(t *testing.T) {
	r, err := readResults(strings.NewReader(sample))
	if err != nil {
		t.Fatal(err)
	}
	got := r.renderGoals()
	for _, want := range []string{
		"| durable, integrated appends in process, one tree | ≥ 2 × Tessera | 3 | yes | 90000 events/s (append/ours/senders=16, p50 10 µs, p99 20 µs) | 30000 events/s (append/tessera/batch=8/age=2ms/senders=16) |\n",
		"| covering checkpoint of 64 senders in process, p50 | ≤ 2000 published-p50-µs | 2500 | no | 2500 published-p50-µs (publish/ours/senders=64) |  |\n",
		"| 1,000 organizations at once over HTTP, the worse spread | ≥ 0.9 × one organization | 0.95 | yes |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "inclusion proof, random leaves") {
		t.Error("a goal without a measurement has a row")
	}
}

func TestEveryGoalIsMeasurable(t *testing.T) {
	for _, g := range performanceGoals() {
		for _, p := range []pick{g.ours, g.beside} {
			if p == (pick{}) {
				continue
			}
			r := &results{}
			if _, ok := p.chooseBest(r); ok { // also compiles the expression
				t.Errorf("%s: found in nothing", g.measure)
			}
		}
	}
}

// measured finds the numbers in prose that are results: those with a unit of time, rate, size or ratio.
var measured = regexp.MustCompile(`\d[\d.,]*\s?(?:µs|ms|s|/s|%|×|times|kB|KB|MB|GB|KiB|MiB|GiB|events/s|requests/s)(?:[^\pL]|$)`)

// unmeasuredNumbers returns the results in prose whose number is not in the table.
func unmeasuredNumbers(document string) (missing []string) {
	prose, table, _ := strings.Cut(document, marker)
	prose = regexp.MustCompile("(?s)```.*?```").ReplaceAllString(prose, "")
	for _, found := range measured.FindAllString(prose, -1) {
		number := regexp.MustCompile(`^[\d.,]*\d`).FindString(found)
		if !regexp.MustCompile(`(?:^|[^\d.,])` + regexp.QuoteMeta(strings.ReplaceAll(number, ",", "")) + `(?:[^\d.]|$)`).MatchString(table) {
			missing = append(missing, strings.TrimSpace(found))
		}
	}
	return missing
}

func TestProseHasNoOtherNumbers(t *testing.T) {
	document, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	if got := unmeasuredNumbers(string(document)); len(got) > 0 {
		t.Errorf("results in the prose that are not in the table: %q", got)
	}
	if n := len(strings.Fields(strings.Split(string(document), marker)[0])); n > 1200 {
		t.Errorf("%d words, want at most 1200", n)
	}
	const example = "It takes 5 ms, 1,200 events/s and 0.7 × the floor, with 64 connections.\n" + marker + "| 1200 events/s | 0.7 |"
	if got := unmeasuredNumbers(example); len(got) != 1 || !strings.HasPrefix(got[0], "5 ms") {
		t.Errorf("got %q", got)
	}
}
